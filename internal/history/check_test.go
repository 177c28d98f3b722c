package history

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// at makes an operation on one key from its client and its times in milliseconds.
func at(client, call, ret int, op Op) Op {
	op.Client, op.Key = client, "k"
	op.Call, op.Return = time.Duration(call)*time.Millisecond, time.Duration(ret)*time.Millisecond
	return op
}

func read(value string) Op            { return Op{Kind: Get, Outcome: Done, Value: value} }
func gets(value string) Op            { return Op{Kind: Gets, Outcome: Done, Value: value} }
func set(value string) Op             { return Op{Kind: Set, Outcome: Done, Value: value} }
func add(value string) Op             { return Op{Kind: Add, Outcome: Done, Value: value} }
func appended(piece string) Op        { return Op{Kind: Append, Outcome: Done, Value: piece} }
func cas(expect, value string) Op     { return Op{Kind: Cas, Outcome: Done, Expect: expect, Value: value} }
func incr(by int64, value string) Op  { return Op{Kind: Incr, Outcome: Done, Delta: by, Value: value} }
func ended(outcome Outcome, op Op) Op { op.Outcome = outcome; return op }

var (
	miss    = Op{Kind: Get, Outcome: Missed}
	deleted = Op{Kind: Delete, Outcome: Done}
	touched = Op{Kind: Touch, Outcome: Done}
)

// inTurn gives operations clients and times, so that each returns before the next is called.
func inTurn(ops ...Op) []Op {
	for i, op := range ops {
		ops[i] = at(i%3, 10*i, 10*i+5, op)
	}
	return ops
}

// lost gives an operation no answer.
func lost(op Op) Op { return ended(Unknown, op) }

// A delete may find what only keeps the place of an item, and deletes items all the same.
func TestDeletedPlaces(t *testing.T) {
	f := func(name string, ok, places bool, ops []Op) {
		t.Helper()
		if r := Check(ops, Contract{Places: places}); (len(r.Violations) == 0) != ok {
			t.Errorf("%s, places %v: want ok = %v:\n%v", name, places, ok, r)
		}
	}
	f("a delete finds nothing", false, false, inTurn(set("a"), deleted, deleted))
	f("a delete finds a place", true, true, inTurn(set("a"), deleted, deleted))
	f("a deleted value is read", false, true, inTurn(set("a"), deleted, read("a")))
}

// A cas may be refused where its value is if its token is of another home of the key, but not where there is none.
func TestRefusedWhereKeysMove(t *testing.T) {
	refused := ended(Refused, cas("a", "b"))
	for _, moves := range []bool{false, true} {
		f := func(name string, ok bool, ops []Op) {
			t.Helper()
			if r := Check(ops, Contract{Moves: moves}); (len(r.Violations) == 0) != ok {
				t.Errorf("%s, moves %v: want ok = %v:\n%v", name, moves, ok, r)
			}
		}
		f("the value is there", moves, inTurn(set("a"), refused, read("a")))
		f("another is there", true, inTurn(set("a"), set("c"), refused, read("c")))
		f("nothing is there", false, inTurn(set("a"), deleted, refused))
		f("it succeeds with another", false, inTurn(set("a"), set("c"), cas("a", "b")))
	}
}

func TestLinearizable(t *testing.T) {
	f := func(name string, ok bool, ops []Op) {
		t.Helper()
		r := Check(ops, Contract{})
		if (len(r.Violations) == 0) != ok {
			t.Errorf("%s: want ok = %v:\n%v", name, ok, r)
		}
		for _, v := range r.Violations {
			if len(v.Ops) > 4 {
				t.Errorf("%s: the violation has %d operations:\n%v", name, len(v.Ops), r)
			}
		}
	}
	f("nothing", true, nil)
	f("read what was set", true, inTurn(set("a"), read("a"), set("b"), read("b"), gets("b")))
	f("a miss means nothing", true, inTurn(set("a"), miss, read("a"), miss, miss, read("a")))
	f("replaced", false, inTurn(set("a"), set("b"), read("a")))
	f("replaced, after a miss", false, inTurn(set("a"), set("b"), miss, read("a")))
	f("back and forth", false, inTurn(set("a"), set("b"), read("b"), read("a"), read("b")))
	f("never written", false, inTurn(set("a"), read("b")))
	f("read before it was written", false, inTurn(read("a"), set("a")))
	f("deleted", false, inTurn(set("a"), deleted, read("a")))
	f("deleted while it was away", false, inTurn(set("a"), miss, ended(Missed, deleted), read("a")))
	f("deleted twice", false, inTurn(set("a"), deleted, deleted))
	f("added where it had been lost", true, inTurn(set("a"), add("b"), read("b")))
	f("added, and the old one returns", false, inTurn(set("a"), add("b"), read("a")))
	f("an add is refused", true, inTurn(set("a"), ended(Refused, add("b")), read("a")))
	f("an add is refused by nothing", false, inTurn(set("a"), deleted, ended(Refused, add("b"))))
	f("touched", true, inTurn(set("a"), touched, read("a")))
	f("touched what was deleted", false, inTurn(set("a"), deleted, touched))
	f("appended", true, inTurn(set("a"), appended("b"), appended("c"), read("a+b+c")))
	f("an append is lost", false, inTurn(set("a"), appended("b"), appended("c"), read("a+c")))
	f("an append is undone", false, inTurn(set("a"), appended("b"), read("a")))
	f("appended twice", false, inTurn(set("a"), appended("b"), read("a+b+b")))
	f("appended to nothing", false, inTurn(set("a"), deleted, appended("b")))
	f("an append nobody saw replaces", false, inTurn(set("a"), appended("b"), miss, read("a")))
	f("cas", true, inTurn(set("a"), gets("a"), cas("a", "b"), read("b")))
	f("cas of what was replaced", false, inTurn(set("a"), gets("a"), set("b"), cas("a", "c")))
	f("cas of what was deleted", false, inTurn(set("a"), gets("a"), deleted, cas("a", "c")))
	f("cas by two", false, inTurn(set("a"), cas("a", "b"), cas("a", "c")))
	f("cas refused", true, inTurn(set("a"), set("b"), ended(Refused, cas("a", "c")), read("b")))
	f("cas refused for nothing", false, inTurn(set("a"), ended(Refused, cas("a", "c"))))
	f("counted", true, inTurn(set("100"), incr(7, "107"), incr(-3, "104"), read("104")))
	f("counted twice", false, inTurn(set("100"), incr(7, "107"), read("114")))
	f("not counted", false, inTurn(set("100"), incr(7, "107"), incr(3, "103")))
	f("a counter falls back", false, inTurn(set("100"), incr(7, "107"), miss, read("100")))
	f("two writes at once", true, []Op{at(0, 0, 9, set("a")), at(1, 0, 9, set("b")), at(2, 10, 11, read("a"))})
	f("two writes at once, both last", false, []Op{
		at(0, 0, 9, set("a")), at(1, 0, 9, set("b")), at(2, 10, 11, read("a")), at(2, 12, 13, read("b"))})
	f("one client's requests in order", true, []Op{
		at(0, 0, 9, set("a")), at(0, 1, 9, read("a")), at(0, 2, 9, set("b")), at(0, 3, 9, read("b"))})
	f("one client's requests out of order", false, []Op{
		at(0, 0, 9, set("a")), at(0, 1, 9, set("b")), at(0, 2, 9, read("a"))})
	f("two clients' requests in any order", true, []Op{
		at(0, 0, 9, set("a")), at(0, 1, 9, set("b")), at(1, 2, 9, read("a"))})
}

func TestUnknownOutcomes(t *testing.T) {
	f := func(name string, ok bool, ops ...Op) {
		t.Helper()
		if r := Check(inTurn(ops...), Contract{}); (len(r.Violations) == 0) != ok {
			t.Errorf("%s: want ok = %v:\n%v", name, ok, r)
		}
	}
	f("a set never happens", true, set("a"), lost(set("b")), read("a"))
	f("a set happens", true, set("a"), lost(set("b")), read("b"))
	f("a set happens late", true, set("a"), lost(set("b")), read("a"), read("b"), read("b"))
	f("a set happens after another", true, set("a"), lost(set("b")), set("c"), read("b"))
	f("a set happens twice", false, set("a"), lost(set("b")), read("b"), set("c"), read("b"))
	f("a set happens before it was called", false, set("a"), read("b"), lost(set("b")))
	f("a delete happens or not", true, set("a"), lost(deleted), read("a"))
	f("a delete does not undo", false, set("a"), set("b"), lost(deleted), read("a"))
	f("an add nobody saw refuses an add", true, set("a"), deleted, lost(add("b")), ended(Refused, add("c")))
	f("an add that came later does not", false, set("a"), deleted, ended(Refused, add("c")), lost(add("b")))
	f("an append nobody saw refuses a cas", true, set("a"), lost(appended("b")), ended(Refused, cas("a", "c")))
	f("an append happens", true, set("a"), lost(appended("b")), appended("c"), read("a+b+c"))
	f("an append happens later", true, set("a"), lost(appended("b")), appended("c"), read("a+c"), read("a+c+b"))
	f("a cas happens", true, set("a"), gets("a"), lost(cas("a", "b")), read("b"))
	f("a cas happens too late", false, set("a"), gets("a"), lost(cas("a", "b")), set("c"), read("b"))
	f("an incr happens", true, set("100"), lost(incr(7, "")), read("107"))
	f("an incr happens unread", true, set("100"), lost(incr(7, "")), incr(1, "108"))
	f("two incrs happen unread", true, set("100"), lost(incr(7, "")), lost(incr(50, "")), incr(1, "158"))
	f("many incrs happen unread", true, set("100"), lost(incr(7, "")), lost(incr(50, "")), lost(incr(300, "")),
		lost(incr(2000, "")), incr(1, "2458"), read("2458"))
	f("many incrs happen unread, and are undone", false, set("100"), lost(incr(7, "")), lost(incr(50, "")),
		lost(incr(300, "")), lost(incr(2000, "")), incr(1, "2458"), read("100"))
	f("an incr happens later", true, set("100"), lost(incr(7, "")), read("100"), read("107"))
	f("an incr happens twice", false, set("100"), lost(incr(7, "")), read("107"), read("114"))
	f("an incr of a set that nobody saw", true, lost(set("100")), lost(incr(7, "")), read("107"))
	f("an incr is undone", false, set("100"), lost(incr(7, "")), read("107"), read("100"))
}

func TestLag(t *testing.T) {
	second := []Op{at(0, 0, 1, set("a")), at(1, 10, 20, set("b")), at(2, 1020, 1021, read("a"))}
	f := func(name string, ok bool, stalest time.Duration, c Contract, ops []Op) {
		t.Helper()
		r := Check(ops, c)
		if (len(r.Violations) == 0) != ok || r.Stalest != stalest {
			t.Errorf("%s: want ok = %v, %v late, and it is %v:\n%v", name, ok, stalest, r.Stalest, r)
		}
	}
	f("within the lag", true, time.Second, Contract{Lag: time.Second}, second)
	f("beyond the lag", false, time.Second, Contract{Lag: time.Second - 1}, second)
	f("no lag", false, 0, Contract{}, second)
	f("not late while the writer waits", true, 0, Contract{Lag: 1},
		[]Op{at(0, 0, 1, set("a")), at(1, 10, 2000, set("b")), at(2, 1020, 1021, read("a"))})
	f("not late if the first writer waits", true, 0, Contract{Lag: 1},
		[]Op{at(0, 0, 1000, set("a")), at(1, 10, 20, set("b")), at(2, 1020, 1021, read("a"))})
	f("late after it was seen", false, time.Second, Contract{Lag: 1},
		[]Op{lost(at(0, 0, 0, set("a"))), at(2, 1, 2, read("a")), at(1, 10, 20, set("b")), at(2, 1020, 1021, read("a"))})
	f("late after a delete", false, time.Second, Contract{Lag: 1},
		[]Op{at(0, 0, 1, set("a")), at(1, 10, 20, ended(Missed, deleted)), at(2, 1020, 1021, read("a"))})
	f("never written", false, 0, Contract{Lag: time.Hour}, inTurn(set("a"), read("b")))
	f("not written yet", false, 0, Contract{Lag: time.Hour}, inTurn(read("a"), set("a")))
	f("gets does not lag", false, 5*time.Millisecond, Contract{Lag: time.Hour}, inTurn(set("a"), set("b"), gets("a")))
	f("a loose gets does", true, 5*time.Millisecond, Contract{Lag: time.Hour, Loose: true}, inTurn(set("a"), set("b"), gets("a")))
	f("so does a loose incr", false, 5*time.Millisecond, Contract{Lag: 1, Loose: true},
		inTurn(set("100"), incr(1, "101"), incr(2, "102")))
}

func TestReadsThatOvertake(t *testing.T) {
	f := func(name string, ok bool, ops ...Op) {
		t.Helper()
		for i, op := range ops {
			ops[i] = at(i/3, i%3, 100, op) // two clients, each with three requests in a packet
		}
		if r := Check(ops, Contract{Overtake: true}); (len(r.Violations) == 0) != ok {
			t.Errorf("%s: want ok = %v:\n%v", name, ok, r)
		}
	}
	f("a read overtakes a read", true, set("a"), set("b"), miss, read("b"), read("a"), miss)
	f("a read overtakes its client's write", false, set("a"), read("b"), miss, read("a"), set("b"), read("a"))
	f("a write overtakes its client's read", false, set("a"), miss, miss, read("b"), set("b"), miss)
	f("a write waits for both reads", false, set("a"), miss, miss, read("a"), read("b"), set("b"))
}

// TestPiecesTellWhatTheWholeTells builds long histories that are fine but for one read, whose value an earlier piece
// has written.
func TestPiecesTellWhatTheWholeTells(t *testing.T) {
	var ops []Op
	for i := range 1000 {
		value := "v" + string(rune('a'+i%26)) + time.Duration(i).String()
		ops = append(ops, set(value), read(value), lost(set("lost"+value)))
	}
	ops = append(ops, read("lost"+ops[0].Value)) // may happen as late as that
	r := Check(inTurn(ops...), Contract{})
	if len(r.Violations) > 0 || r.Pieces < 10 {
		t.Fatalf("the history is fine and long: %v", r)
	}
	ops = append(ops, set("last"), read(ops[300].Value))
	r = Check(inTurn(ops...), Contract{})
	if len(r.Violations) != 1 || len(r.Violations[0].Ops) > 4 {
		t.Fatalf("want one violation of a few operations: %v", r)
	}
	origin := func(op Op) bool { return op.Kind == Set && op.Value == ops[300].Value }
	if !slices.ContainsFunc(r.Violations[0].Ops, origin) {
		t.Errorf("the violation does not tell who wrote the value: %v", r)
	}
}

func TestSave(t *testing.T) {
	r := Check(inTurn(set("a"), set("b"), read("a")), Contract{})
	dir := filepath.Join(t.TempDir(), "new")
	if err := r.Violations[0].Save(dir, 1); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "violation-1.txt"))
	if err != nil || !strings.Contains(string(text), "[20000, 25000] client 2: get k = a") {
		t.Errorf("the text is %q, %v", text, err)
	}
	html, err := os.ReadFile(filepath.Join(dir, "violation-1.html"))
	if err != nil || !strings.Contains(string(html), "get k = a") {
		t.Errorf("the picture has %d bytes, %v, and not the read", len(html), err)
	}
}

func TestRecorderKeepsOrderAndTimes(t *testing.T) {
	r := NewRecorder()
	a, b := r.Client(), r.Client()
	n := a.Call(Op{Kind: Set, Key: "k", Value: "x"})
	m := b.Call(Op{Kind: Get, Key: "k"})
	b.Return(m, Done, "x")
	a.Call(Op{Kind: Delete, Key: "k"})
	a.Return(n, Done, "")
	ops := r.Ops()
	if len(ops) != 3 || ops[0].Value != "x" || ops[0].Outcome != Done || ops[1].Outcome != Unknown || ops[2].Client != 1 {
		t.Fatalf("the record is %v", ops)
	}
	if ops[0].Call > ops[2].Call || ops[2].Return > ops[0].Return || ops[0].Call > ops[0].Return {
		t.Errorf("the times are not in order: %v", ops)
	}
	if table := Counts(ops); !strings.Contains(table, "delete") {
		t.Errorf("the counts are %q", table)
	}
}

func TestValues(t *testing.T) {
	f := func(bytes, want string, ok bool) {
		t.Helper()
		got, err := Parse([]byte(bytes))
		if got != want || (err == nil) != ok {
			t.Errorf("%q is %q, %v; want %q", bytes, got, err, want)
		}
	}
	value := AppendPiece(AppendPiece(nil, "1.2", 0), "3.4", 5)
	f(string(value), "1.2+3.4", true)
	f(string(value[:len(value)-1]), "", false)
	f(string(value[1:]), ".2+3.4", true) // a name is what its writer says
	f("a:1:;", "", false)
	f("a:1:..;", "", false)
	f("a:1:x;", "", false)
	f("a:-1:;", "", false)
	f("a:99999999999999999999:;", "", false)
	f("a", "", false)
	f("", "", true)
}
