# Cache::Memcached::Fast, a client in C for Perl.
use strict;
use warnings;
use Cache::Memcached::Fast;

my $server = "$ARGV[0]:$ARGV[1]";

sub client { Cache::Memcached::Fast->new({ servers => [$server], @_ }) }

sub show { defined $_[0] ? $_[0] : 'undef' }

sub eq_ {
    my ($got, $want) = @_;
    die 'got ' . show($got) . ', want ' . show($want) . "\n" if show($got) ne show($want);
}

my %checks = (
    set_get => sub {
        my $m = shift;
        eq_($m->set('a', 'hello'), 1);
        eq_($m->get('a'), 'hello');
        eq_($m->get('none'), undef);
    },
    empty_value => sub {
        my $m = shift;
        eq_($m->set('a', ''), 1);
        eq_($m->get('a'), '');
    },
    structure => sub {
        my $m = shift;
        $m->set('s', { a => [1, 2] });
        eq_($m->get('s')->{a}[1], 2);
    },
    add_replace => sub {
        my $m = shift;
        eq_($m->replace('a', 1), '');
        eq_($m->add('a', 1), 1);
        eq_($m->add('a', 2), '');
        eq_($m->replace('a', 3), 1);
        eq_($m->get('a'), 3);
    },
    append_prepend => sub {
        my $m = shift;
        eq_($m->append('a', 'x'), '');
        $m->set('a', 'm');
        eq_($m->append('a', 'r'), 1);
        eq_($m->prepend('a', 'l'), 1);
        eq_($m->get('a'), 'lmr');
    },
    delete => sub {
        my $m = shift;
        $m->set('a', 1);
        eq_($m->delete('a'), 1);
        eq_($m->delete('a'), '');
    },
    counters => sub {
        my $m = shift;
        $m->set('n', 5);
        eq_($m->incr('n'), 6);
        eq_($m->incr('n', 10), 16);
        eq_($m->decr('n', 20) + 0, 0);
        eq_($m->incr('none'), '');
    },
    cas => sub {
        my $m = shift;
        $m->set('c', 1);
        my $got = $m->gets('c');
        eq_($got->[1], 1);
        eq_($m->cas('c', $got->[0], 2), 1);
        eq_($m->cas('c', $got->[0], 3), '');
        eq_($m->cas('none', $got->[0], 3), '');
        eq_($m->get('c'), 2);
    },
    multi => sub {
        my $m = shift;
        $m->set_multi(map { ["k$_", "v$_"] } 0 .. 299);
        my $got = $m->get_multi((map { "k$_" } 0 .. 299), 'none');
        eq_(scalar keys %$got, 300);
        eq_($got->{"k$_"}, "v$_") for 0 .. 299;
        my $cas = $m->gets_multi('k1', 'k2', 'none');
        eq_(scalar keys %$cas, 2);
        $m->delete_multi(map { "k$_" } 0 .. 299);
        eq_(scalar keys %{ $m->get_multi(map { "k$_" } 0 .. 299) }, 0);
    },
    multi_counters => sub {
        my $m = shift;
        $m->set("n$_", $_) for 1 .. 20;
        my $got = $m->incr_multi(map { ["n$_", 100] } 1 .. 20);
        eq_($got->{"n$_"}, $_ + 100) for 1 .. 20;
    },
    touch => sub {
        my $m = shift;
        $m->set('a', 1);
        eq_($m->touch('a', 1000), 1);
        eq_($m->touch('none', 1000), '');
    },
    get_and_touch => sub {
        my $m = shift;
        return unless $m->can('gat');
        $m->set('a', 'x');
        eq_($m->gat(1000, 'a'), 'x');
        eq_($m->gats(1000, 'a')->[1], 'x');
        eq_(scalar keys %{ $m->gat_multi(1000, 'a', 'b') }, 1);
    },
    nowait => sub {
        my $m    = shift;
        my $fast = client(nowait => 1);
        $fast->set("q$_", $_) for 1 .. 200;
        $fast->delete('none');
        $fast->nowait_push;
        eq_($m->get("q$_"), $_) for 1 .. 200;
    },
    big_value => sub {
        my $m = shift;
        my $v = 'w' x 1000000;
        eq_($m->set('big', $v), 1);
        eq_($m->get('big') eq $v, 1);
    },
    too_big => sub {
        my $big = client(max_size => 4 << 20);
        $big->set('big', 'old');
        eq_($big->set('big', 'w' x 1100000), undef);
        eq_($big->get('big'), undef);
        eq_($big->set('after', 1), 1);
    },
    namespace => sub {
        my $m = shift;
        my $n = client(namespace => 'app:');
        $n->set('a', 1);
        eq_($m->get('app:a'), 1);
    },
    versions => sub {
        my $m = shift;
        my ($v) = values %{ $m->server_versions };
        die "version $v\n" unless $v =~ /^\d+\.\d+\.\d+$/;
    },
    flush => sub {
        my $m = shift;
        $m->set("f$_", $_) for 1 .. 30;
        eq_((values %{ $m->flush_all })[0], 1);
        eq_(scalar keys %{ $m->get_multi(map { "f$_" } 1 .. 30) }, 0);
    },
    disconnect_and_return => sub {
        my $m = shift;
        $m->set('a', 1);
        $m->disconnect_all;
        eq_($m->get('a'), 1);
    },
);

for my $name (sort keys %checks) {
    my $m = client();
    $m->flush_all;
    if (eval { $checks{$name}->($m); 1 }) {
        print "PASS $name\n";
    } else {
        chomp(my $why = $@);
        print "FAIL $name: $why\n";
    }
}
