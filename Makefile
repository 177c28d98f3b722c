# make run     a router in front of three embedded servers, nothing to install
# make test    everything: format, vet, staticcheck, and all tests with the race detector
# make help    the other targets

GO ?= go
OPS ?= 1000000
# With the recorded profile all packages are compiled anew, which is for what is released, not for tests.
export GOFLAGS += -pgo=off
STATICCHECK ?= $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 30s

.PHONY: help run build pgo test test-deps lint fmt fuzz coherence bench bench-peers bench-scale bench-protocols scenarios scenarios-long lab bound-long release clean

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

run: ## start a router with embedded servers (cacherouter dev)
	$(GO) run ./cmd/cacherouter dev

build: ## build bin/cacherouter as it is released
	$(GO) build -trimpath -pgo=auto -o bin/cacherouter ./cmd/cacherouter

pgo: ## record anew what the compiler is told of the router under load, for build and release
	scripts/pgo.sh

test: test-deps lint ## the whole suite; installs the Debian packages it needs when run as root
	$(GO) test -race -p 3 -timeout 14m ./... # many packages mostly wait
	$(GO) test ./admin -run Fast # which the race detector is too slow for
	cd bench/placement && $(GO) vet ./... && $(GO) test ./...
	cd bench/near && $(GO) vet ./... && $(GO) test ./...
	cd deploy/kubernetes && $(GO) vet ./... && $(GO) test ./...
	@if command -v qemu-aarch64 >/dev/null; then sh bench/placement/architectures.sh; \
	else echo "skipped: placement on other architectures, as qemu-user is not installed"; fi
	@docker info >/dev/null 2>&1 || printf '\n%s\n\n' "SKIPPED: docker-compose.yml was only read, not run: NO DOCKER ENGINE ANSWERS HERE"

test-deps: ## install real memcached and the real clients, where apt-get and root are at hand
	./scripts/install-test-deps.sh

lint: fmt ## gofmt, go vet, staticcheck
	$(GO) vet ./...
	$(STATICCHECK) ./...

fmt: ## fail when a file is not gofmt'ed
	@files=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .); \
	if [ -n "$$files" ]; then echo "not gofmt'ed:"; echo "$$files"; exit 1; fi

fuzz: ## run every fuzz target for FUZZTIME each
	FUZZTIME=$(FUZZTIME) ./scripts/fuzz.sh

coherence: ## check recorded histories of OPS operations under faults; SEED repeats one
	$(GO) test ./e2e -run '^TestCoherence$$' -count=1 -v -timeout 6h -coherence.ops=$(OPS) $(if $(SEED),-coherence.seed=$(SEED))

bench: ## micro-benchmarks with allocations
	$(GO) test -run '^$$' -bench . -benchmem ./...

bench-peers: ## compare with memcached, nutcracker, haproxy and (MCPROXY=PATH) memcached's proxy: a quarter of an hour
	$(GO) run ./loadtest matrix --into docs/performance $(if $(MCPROXY),--mcproxy $(MCPROXY))
	$(GO) run ./loadtest peers

bench-scale: ## what more servers, clients, loops, pools, routes and hot keys cost
	$(GO) run ./loadtest scale --into docs/performance

bench-protocols: ## what meta, binary and TLS cost, against text and a TLS echo
	$(GO) run ./loadtest protocols

scenarios: ## break real fleets and see what clients see; about half an hour, as root
	$(GO) run ./loadtest scenario all

scenarios-long: ## the same with more repeats, more operations and longer faults; about two hours
	$(GO) run ./loadtest scenario all --long

lab: ## experiments in virtual time, compared with their sources and with what they found before
	$(GO) test ./loadtest/lab -count=1 -timeout 30m -all

bound-long: ## place 10^8 requests from eight goroutines under the race detector
	$(GO) test -race ./bounded -run UnderContention -count=1 -v -timeout 4h -picks 100000000

release: ## make binaries, Debian packages, a list of parts and checksums of VERSION in dist/
	scripts/release.sh $(VERSION)

clean: ## remove what build and release made
	rm -rf bin dist
