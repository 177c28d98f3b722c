package e2e

import "testing"

// TestFaultsOnEpoll does the tests of faults once more on the engine that auto takes where io_uring is not to be had:
// what is half sent or half received when a socket breaks is kept elsewhere there.
func TestFaultsOnEpoll(t *testing.T) {
	was := *engine
	if was == "epoll" {
		t.Skip("all tests are on it")
	}
	*engine = "epoll"
	t.Cleanup(func() { *engine = was }) // when they are over
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"cut", TestReadInFlightIsRetriedOnce},
		{"faulty", TestFaultyReplies},
		{"come and go", TestServersComeAndGoUnderLoad},
		{"mid-value", TestClientsDisappearMidValue},
		{"before the reply", TestClientsDisappearBeforeTheReply},
		{"lying", TestLyingBackend},
		{"full", TestFullBackend},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t)
		})
	}
}
