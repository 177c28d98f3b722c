# The router as an image: one static binary, no shell, no root.
#
#   docker build -t cacherouter --build-arg VERSION=1.2.3 .
#   docker run -v ./cacherouter.yml:/etc/cacherouter/cacherouter.yml:ro --read-only cacherouter
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-X main.version=$VERSION" -o /bin/ ./cmd/cacherouter ./loadtest

# The load test, and what breaks containers (docker build --target loadtest).
FROM scratch AS loadtest
COPY --from=build /bin/loadtest /loadtest
USER 65532:65532
ENTRYPOINT ["/loadtest"]

# The last one is what is built by default.
FROM scratch AS router
COPY --from=build /bin/cacherouter /cacherouter
USER 65532:65532
EXPOSE 11311 11312 11313
# Asks 127.0.0.1:11312, so admin has to listen there too: on :11312 or on that address.
HEALTHCHECK --interval=2s --timeout=5s --start-period=10s CMD ["/cacherouter", "healthcheck"]
ENTRYPOINT ["/cacherouter"]
CMD ["serve", "--config", "/etc/cacherouter/cacherouter.yml"]
