# Dalli 3.0, which speaks the binary protocol only.
require "dalli"
require "logger"

Dalli.logger = Logger.new(nil)
HOST, PORT = ARGV
SERVER = "#{HOST}:#{PORT}"

def client(**options)
  Dalli::Client.new(SERVER, **options)
end

def eq(got, want)
  raise "got #{got.inspect}, want #{want.inspect}" unless got == want
end

def raises(kind)
  yield
rescue kind
  nil
else
  raise "no #{kind}"
end

CHECKS = {
  "set_get" => lambda { |d|
    raise "not set" unless d.set("a", "hello")
    eq d.get("a"), "hello"
    eq d.get("none"), nil
  },
  "types" => lambda { |d|
    ["", "text", 0, 2**70, 1.5, true, nil, [1, { "a" => 2 }], :symbol].each do |value|
      d.set("t", value)
      eq d.get("t"), value
    end
  },
  "raw" => lambda { |d|
    d.set("a", "12", nil, raw: true)
    eq d.get("a"), "12"
  },
  "add_replace" => lambda { |d|
    raise "replaced nothing" if (d.replace("a", 1) || 0) != 0
    raise "not added" unless d.add("a", 1)
    eq !!d.add("a", 2), false
    raise "not replaced" unless d.replace("a", 3)
    eq d.get("a"), 3
  },
  "append_prepend" => lambda { |d|
    eq d.append("a", "x"), false
    d.set("a", "m", nil, raw: true)
    eq d.append("a", "r"), true
    eq d.prepend("a", "l"), true
    eq d.get("a"), "lmr"
  },
  "delete" => lambda { |d|
    d.set("a", 1)
    eq !!d.delete("a"), true
    eq !!d.delete("a"), false
  },
  "counters" => lambda { |d|
    eq d.incr("n", 1), nil
    eq d.incr("n", 1, 0, 10), 10
    eq d.incr("n", 5), 15
    eq d.decr("n", 20), 0
    eq d.incr("huge", 1, 0, 2**64 - 1), 2**64 - 1
  },
  "not_a_number" => lambda { |d|
    d.set("n", "many", nil, raw: true)
    raises(Dalli::DalliError) { d.incr("n", 1) }
    eq d.get("n"), "many"
  },
  "cas" => lambda { |d|
    d.set("c", 1)
    raise "not stored" unless d.cas("c") { |v| v + 1 }
    eq d.get("c"), 2
    other = client
    eq d.cas("c") { |_| other.set("c", 9); 3 }, false
    eq d.get("c"), 9
    eq d.cas("none") { |_| 1 }, nil
  },
  "multi" => lambda { |d|
    many = (0...300).to_h { |i| ["k#{i}", "v#{i}"] }
    d.multi { many.each { |k, v| d.set(k, v) } }
    eq d.get_multi(many.keys + ["none"]), many
    d.multi { many.each_key { |k| d.delete(k) } }
    eq d.get_multi(many.keys), {}
  },
  "quiet_errors" => lambda { |d|
    d.set("a", 1)
    d.multi { d.add("a", 2); d.replace("none", 1); d.delete("none") }
    eq d.get("a"), 1
  },
  "fetch" => lambda { |d|
    eq d.fetch("a") { "made" }, "made"
    eq d.fetch("a") { "again" }, "made"
  },
  "touch" => lambda { |d|
    d.set("a", 1)
    eq !!d.touch("a", 1000), true
    eq !!d.touch("none", 1000), false
  },
  "get_and_touch" => lambda { |d|
    d.set("a", 1)
    eq d.gat("a", 1000), 1
    eq d.gat("none", 1000), nil
  },
  "expiry" => lambda { |d|
    d.set("a", 1, 1000)
    eq d.get("a"), 1
    d.set("a", 1, 40 * 86_400)
    eq d.get("a"), 1
  },
  "keys_of_any_bytes" => lambda { |d|
    ["with space", "new\nline", "caf\u00e9", "k" * 250].each do |key|
      d.set(key, key)
      eq d.get(key), key
    end
  },
  "key_too_long" => lambda { |d|
    d.set("k" * 400, 1) # Dalli hashes the key
    eq d.get("k" * 400), 1
  },
  "big_value" => lambda { |_|
    large = client(compress: false)
    value = "x" * 900_000
    large.set("big", value)
    eq large.get("big"), value
  },
  "too_big" => lambda { |_|
    large = client(value_max_bytes: 4 << 20, compress: false)
    large.set("big", "old")
    begin
      large.set("big", "x" * 1_100_000, nil, raw: true)
    rescue Dalli::DalliError
      nil
    end
    eq client.get("big"), nil
  },
  "compressed" => lambda { |_|
    d = client(compress: true)
    d.set("z", "abc" * 10_000)
    eq d.get("z"), "abc" * 10_000
  },
  "namespace" => lambda { |d|
    n = client(namespace: "app")
    n.set("a", 1)
    eq n.get("a"), 1
    eq d.get("app:a"), 1
  },
  "stats" => lambda { |d|
    values = d.stats.values.first
    %w[pid uptime version curr_items].each { |name| raise "no #{name}" unless values[name] }
  },
  "stats_items" => lambda { |d|
    d.stats(:items)
    d.set("a", 1)
    eq d.get("a"), 1
  },
  "reset_stats" => lambda { |d|
    d.reset_stats
    d.set("a", 1)
    eq d.get("a"), 1
  },
  "version" => lambda { |d|
    raise d.version.inspect unless d.version.values.first.match?(/\A\d+\.\d+\.\d+\z/)
  },
  "alive" => ->(d) { d.alive! },
  "flush" => lambda { |d|
    30.times { |i| d.set("f#{i}", i) }
    d.flush
    eq d.get_multi("f0", "f7", "f29"), {}
  },
  "close_and_return" => lambda { |d|
    d.set("a", 1)
    d.close
    eq d.get("a"), 1
  }
}.freeze

CHECKS.sort.each do |name, check|
  d = client
  d.flush
  begin
    check.call(d)
    puts "PASS #{name}"
  rescue StandardError => e
    puts "FAIL #{name}: #{e.class} #{e.message}"
  end
  d.close
end
