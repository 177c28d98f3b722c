package router

import "testing"

// What tells where keys go knows what a router does.
func TestTargetsOfKeys(t *testing.T) {
	routes, err := NewRoutes([]Route{
		{Prefix: "a:", Pool: "a", Strip: true, Add: "v2:"},
		{Prefix: "a:secret:", Deny: true},
		{Prefix: "b:", Pool: "a", Split: Split{Pool: "b", Share: 1}},
	}, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	f := func(key string, want Target) {
		t.Helper()
		if got := routes.Target(key); got != want {
			t.Errorf("%s goes to %+v, want %+v", key, got, want)
		}
	}
	f("a:1", Target{Prefix: "a:", Pool: "a", Known: "v2:1"})
	f("a:secret:1", Target{Prefix: "a:secret:"})
	f("b:1", Target{Prefix: "b:", Pool: "b", Known: "b:1"})
	f("c:1", Target{})
	if _, err := NewRoutes([]Route{{Pool: "c"}}, []string{"a"}); err == nil {
		t.Error("a route to a pool that is not there is taken")
	}
	if routes, err = NewRoutes(nil, []string{"a"}); err != nil || routes.Target("x") != (Target{Pool: "a", Known: "x"}) {
		t.Errorf("without routes x goes to %+v, %v", routes.Target("x"), err)
	}
}
