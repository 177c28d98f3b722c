package hotkey_test

import (
	"fmt"
	"time"

	"cacherouter/epoch"
	"cacherouter/hotkey"
)

func Example() {
	counter := hotkey.NewCounter(0x5eed) // one for each loop; the seed is secret
	collector, err := hotkey.NewCollector(hotkey.Config{Servers: 8})
	if err != nil {
		panic(err)
	}
	collector.Collect(nil, 0)
	hash := map[string]uint64{"celebrity": 11, "nobody": 12}
	var sample hotkey.Sample
	for now := time.Duration(0); now < time.Second; {
		for range 900 {
			counter.Touch(hash["celebrity"], []byte("celebrity"))
		}
		counter.Touch(hash["nobody"], []byte("nobody"))
		now += 100 * time.Millisecond
		counter.Sample(&sample, now)
		for _, c := range collector.Collect([]*hotkey.Sample{&sample}, now) {
			fmt.Printf("%s becomes %v with %.0f %% of all requests\n", c.Key, c.To, 100*c.Share)
		}
	}
	heat := collector.Heat()
	fmt.Println(heat.Level(hash["celebrity"]), heat.Level(hash["nobody"]))
	// Output:
	// celebrity becomes severe with 99 % of all requests
	// severe cold
}

func ExampleNear() {
	epochs := epoch.New(0) // one for the router
	near, err := hotkey.NewNear(hotkey.NearConfig{Bytes: 1 << 20, TTL: 250 * time.Millisecond, Epochs: epochs})
	if err != nil {
		panic(err)
	}
	const hash = 11
	key := []byte("celebrity")
	get := func() string {
		if value, ok := near.Find(hash, key, 0); ok {
			return string(value)
		}
		return "must ask the server"
	}
	token := near.Begin(hash, 0) // a get is sent, and answered
	near.Fill(token, key, []byte("old"))
	fmt.Println(get())

	token = near.Begin(hash, 0) // another is sent
	epochs.Began(hash)          // then a write
	fmt.Println(get())
	epochs.Ended(hash)
	near.Fill(token, key, []byte("old")) // the get's answer comes late
	fmt.Println(get())
	// Output:
	// old
	// must ask the server
	// must ask the server
}
