package e2e

import "testing"

// TestLoadKnowsRightFromWrong checks the checker that the fault tests stand on.
func TestLoadKnowsRightFromWrong(t *testing.T) {
	f := func(c cell, moving bool, values map[string]string, ok bool) {
		t.Helper()
		c.key = "k"
		if err := c.check(values, moving); (err == nil) != ok {
			t.Errorf("%+v with %q: %v, want ok = %v", c, values, err, ok)
		}
	}
	clean := cell{last: 3, stored: 3}
	murky := cell{last: 3, stored: 2, murky: true}
	f(clean, false, map[string]string{}, true)
	f(clean, false, map[string]string{"k": "k=3---"}, true)
	f(clean, false, map[string]string{"k": "k=2--"}, false)
	f(clean, true, map[string]string{"k": "k=2--"}, true)
	f(murky, false, map[string]string{"k": "k=3---"}, true)
	f(murky, false, map[string]string{"k": "k=1-"}, true)
	f(murky, true, map[string]string{"k": "k=4----"}, false)
	f(clean, false, map[string]string{"k": "j=3---"}, false)
	f(clean, false, map[string]string{"k": "k=3--"}, false)
	f(clean, true, map[string]string{"k": ""}, false)
}
