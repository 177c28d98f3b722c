// Package e2e tests the built router as its users meet it: the real binary, real memcached processes behind it, real
// client programs in front, real signals. It holds no code of the product.
//
// The binary is built once with the race detector; a test fails when the router reports a race, panics, or does not
// end with status 0 after SIGTERM, whatever else the test looks at.
package e2e
