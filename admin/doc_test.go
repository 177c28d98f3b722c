package admin

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestDocumented: docs/api.md names every field of every answer that it describes.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range []any{
		Overview{}, Problem{}, Servers{}, ServerLoad{}, Placement{}, PlacedServer{}, Taker{}, Handover{}, Routers{}, Peer{}, Changes{}, Change{}, Where{}, Candidate{}, Event{}, PoolInfo{},
	} {
		typ := reflect.TypeOf(answer)
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name != "" && !strings.Contains(string(b), "`"+name+"`") {
				t.Errorf("docs/api.md does not name %s of %s", name, typ.Name())
			}
		}
	}
}
