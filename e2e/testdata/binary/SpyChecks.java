// spymemcached, in its binary or its text protocol.
// usage: java -cp /usr/share/java/spymemcached.jar SpyChecks.java HOST PORT binary|text

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import net.spy.memcached.AddrUtil;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.ConnectionFactoryBuilder.Protocol;
import net.spy.memcached.MemcachedClient;

public class SpyChecks {
  interface Check {
    void run(MemcachedClient c) throws Exception;
  }

  static String server;
  static boolean binary;

  static MemcachedClient client() throws Exception {
    var factory = new ConnectionFactoryBuilder().setProtocol(binary ? Protocol.BINARY : Protocol.TEXT).setOpTimeout(10000);
    return new MemcachedClient(factory.build(), AddrUtil.getAddresses(server));
  }

  static void eq(Object got, Object want) {
    if (!Objects.equals(got, want)) {
      throw new AssertionError("got " + got + ", want " + want);
    }
  }

  static <T> T wait(Future<T> f) throws Exception {
    return f.get(10, TimeUnit.SECONDS);
  }

  static final Map<String, Check> checks = new TreeMap<>();

  static void values() {
    checks.put("set_get", c -> {
      eq(wait(c.set("a", 0, "hello")), true);
      eq(c.get("a"), "hello");
      eq(c.get("none"), null);
    });
    checks.put("types", c -> {
      for (Object v : List.of("", "text", 7, 1L << 40, 1.5, true, (byte) 3, List.of(1, 2))) {
        wait(c.set("t", 0, v));
        eq(c.get("t"), v);
      }
    });
    checks.put("add_replace", c -> {
      eq(wait(c.replace("a", 0, 1)), false);
      eq(wait(c.add("a", 0, 1)), true);
      eq(wait(c.add("a", 0, 2)), false);
      eq(wait(c.replace("a", 0, 3)), true);
      eq(c.get("a"), 3);
    });
    checks.put("append_prepend", c -> {
      eq(wait(c.append("a", "x")), false);
      wait(c.set("a", 0, "m"));
      eq(wait(c.append("a", "r")), true);
      eq(wait(c.prepend("a", "l")), true);
      eq(c.get("a"), "lmr");
    });
    checks.put("append_cas", c -> {
      wait(c.set("a", 0, "m"));
      CASValue<Object> v = c.gets("a");
      eq(wait(c.append(v.getCas(), "a", "r")), true);
      eq(c.get("a"), "mr");
    });
    checks.put("delete", c -> {
      wait(c.set("a", 0, 1));
      eq(wait(c.delete("a")), true);
      eq(wait(c.delete("a")), false);
    });
    checks.put("counters", c -> {
      eq(c.incr("n", 1), -1L);
      eq(c.incr("n", 1, 10), 10L);
      eq(c.incr("n", 5), 15L);
      eq(c.decr("n", 20), 0L);
      eq(c.decr("m", 1, 7, 100), 7L);
      eq(wait(c.asyncIncr("n", 2)), 2L);
    });
    checks.put("cas", c -> {
      wait(c.set("c", 0, 1));
      CASValue<Object> v = c.gets("c");
      eq(c.cas("c", v.getCas(), 2), CASResponse.OK);
      eq(c.cas("c", v.getCas(), 3), CASResponse.EXISTS);
      eq(c.cas("none", v.getCas(), 3), CASResponse.NOT_FOUND);
      eq(c.get("c"), 2);
    });
    checks.put("expiry", c -> {
      eq(wait(c.set("a", 1000, "v")), true);
      eq(c.get("a"), "v");
      wait(c.set("a", 2592001, "v"));
      eq(c.get("a"), null);
    });
    checks.put("touch", c -> {
      wait(c.set("a", 0, 1));
      eq(wait(c.touch("a", 1000)), true);
      eq(wait(c.touch("none", 1000)), false);
    });
    checks.put("get_and_touch", c -> {
      wait(c.set("a", 0, 1));
      eq(c.getAndTouch("a", 1000).getValue(), 1);
      eq(c.getAndTouch("none", 1000), null);
    });
  }

  static void sizes() {
    checks.put("multi", c -> {
      Map<String, Object> many = new HashMap<>();
      for (int i = 0; i < 300; i++) {
        many.put("k" + i, "v" + i);
        c.set("k" + i, 0, "v" + i);
      }
      List<String> keys = new ArrayList<>(many.keySet());
      keys.add("none");
      eq(c.getBulk(keys), many);
    });
    checks.put("pipelined", c -> {
      List<Future<Object>> gets = new ArrayList<>();
      for (int i = 0; i < 500; i++) {
        c.set("p" + i, 0, i);
        gets.add(c.asyncGet("p" + i));
      }
      for (int i = 0; i < 500; i++) {
        eq(wait(gets.get(i)), i);
      }
    });
    checks.put("big_value", c -> {
      byte[] value = new byte[900000];
      new java.util.Random(1).nextBytes(value);
      eq(wait(c.set("big", 0, value)), true);
      eq(java.util.Arrays.equals((byte[]) c.get("big"), value), true);
    });
    checks.put("too_big", c -> {
      byte[] value = new byte[1040000]; // the client itself refuses more than 1 MiB
      new java.util.Random(1).nextBytes(value);
      wait(c.set("big", 0, "old"));
      try {
        wait(c.append("big", value));
        wait(c.append("big", value));
      } catch (Exception e) {
        // told in one way or another
      }
      MemcachedClient other = client();
      eq(wait(other.set("after", 0, 1)), true);
      other.shutdown();
    });
    checks.put("longest_key", c -> {
      String key = "k".repeat(250);
      eq(wait(c.set(key, 0, 1)), true);
      eq(c.get(key), 1);
    });
    checks.put("not_a_number", c -> {
      wait(c.set("n", 0, "many"));
      try {
        c.incr("n", 1);
      } catch (Exception e) {
        // told in one way or another
      }
      eq(c.get("n"), "many");
    });
  }

  static void rest() {
    checks.put("versions", c -> {
      for (String v : c.getVersions().values()) {
        eq(v.matches("\\d+\\.\\d+\\.\\d+"), true);
      }
    });
    checks.put("stats", c -> {
      for (Map<String, String> stats : c.getStats().values()) {
        for (String name : List.of("pid", "uptime", "version", "curr_items")) {
          eq(stats.containsKey(name), true);
        }
      }
    });
    checks.put("stats_settings", c -> {
      for (Map<String, String> stats : c.getStats("settings").values()) {
        eq(stats.containsKey("num_threads"), true);
      }
    });
    checks.put("flush", c -> {
      for (int i = 0; i < 30; i++) {
        c.set("f" + i, 0, i);
      }
      eq(wait(c.flush()), true);
      eq(c.getBulk("f0", "f7", "f29"), Map.of());
    });
    if (binary) {
      checks.put("key_with_space", c -> {
        AtomicReference<Object> got = new AtomicReference<>();
        try {
          wait(c.set("with space", 0, 1));
          got.set(c.get("with space"));
        } catch (IllegalArgumentException e) {
          got.set(1); // some builds of the client do not let it pass
        }
        eq(got.get(), 1);
      });
    }
  }

  public static void main(String[] args) throws Exception {
    System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
    java.util.logging.LogManager.getLogManager().reset();
    server = args[0] + ":" + args[1];
    binary = args[2].equals("binary");
    values();
    sizes();
    rest();
    for (Map.Entry<String, Check> check : checks.entrySet()) {
      MemcachedClient c = client();
      wait(c.flush());
      try {
        check.getValue().run(c);
        System.out.println("PASS " + check.getKey());
      } catch (Throwable e) {
        System.out.println("FAIL " + check.getKey() + ": " + e);
      }
      c.shutdown();
    }
    System.exit(0);
  }
}
