package epoch_test

import (
	"fmt"

	"cacherouter/epoch"
)

func Example() {
	epochs := epoch.New(0) // one for the router
	const hash = 11

	token := epochs.Now(hash) // a get is sent
	epochs.Began(hash)        // and a write
	epochs.Ended(hash)        // which is answered first
	fmt.Println("keep the get's answer:", epochs.Now(hash) == token)

	token = epochs.Now(hash) // another get, whose answer is copied to a second server
	if epochs.FillBegan(hash, token) {
		epochs.Began(hash)
		fmt.Println("a write must wait before it removes the copy:", epochs.Fills(hash))
		epochs.FillEnded(hash)
		fmt.Println("still:", epochs.Fills(hash))
	}
	// Output:
	// keep the get's answer: false
	// a write must wait before it removes the copy: true
	// still: false
}
