// Package systemd tests the unit in this folder, and the configuration that it serves.
package systemd
