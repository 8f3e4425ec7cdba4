use fullview_filter::interfaces::{FilterInterface, Interfaces};
use fullview_filter::ipfw::IpfwConfig;
use fullview_filter::ruleset::RuleSet;

/// The only rule of a script of one line, printed.
pub fn printed(command: &str) -> String {
    let config = IpfwConfig::load("rules", command).unwrap_or_else(|error| panic!("{command}: {error}"));
    assert_eq!(config.rules.len(), 1, "{command}");
    config.rules[0].to_string()
}

#[test]
fn a_shell_script_with_a_variable_for_the_program_loads() {
    let script = "#!/bin/sh\nfwcmd=\"/sbin/ipfw\"\n# Flush out the list before we begin.\n${fwcmd} -f flush\n\
                  ${fwcmd} add 3000 allow ip from any to any keep-state\n";
    let config = IpfwConfig::load("ipfw.rules", script).unwrap();
    let list = "03000 allow ip from any to any keep-state :default\n65535 deny ip from any to any\n";
    assert_eq!(config.to_string(), list);
}

/// A table would have the IPv4 address, and the rule would mean other packets than it says.
#[test]
fn an_ipv4_address_as_ipv6_maps_it_is_refused_in_a_table() {
    let error = IpfwConfig::load("rules", "table bad add ::ffff:192.0.2.1").unwrap_err().to_string();
    assert!(error.contains("::ffff:192.0.2.1") && error.contains("IPv4 address"), "{error}");
}

#[test]
fn rules_print_as_ipfw_lists_them() {
    for (command, expected) in [
        (
            "ipfw -q add allow tcp from any to me 22,80-90 setup keep-state :IN",
            "00100 allow tcp from any to me dst-port 22,80-90 setup keep-state :IN",
        ),
        (
            "add 5 deny ip from 192.0.2.7/24 to not table(bad)",
            "00005 deny ip from 192.0.2.0/24 to not table(bad)",
        ),
        (
            "add pass udp from { 1.2.3.4 or not 10.0.0.0/8 } 53 to any",
            "00100 allow udp from { 1.2.3.4 or not 10.0.0.0/8 } 53 to any",
        ),
        (
            "add 7 set 3 prob 0.5 count log logamount 10 icmp from any to any icmptypes 8,0 in via em0",
            "00007 prob 0.500000 count log icmp from any to any icmptypes 0,8 in via em0",
        ),
        (
            "add reject { tcp or udp } from any to 1.2.3.0/24{1,5-9}",
            "00100 reject { tcp or udp } from any to 1.2.3.0/24{1,5-9}",
        ),
        (
            "add allow tcp from any to any limit src-addr 4 :X // note",
            "00100 allow tcp from any to any limit src-addr 4 :X // note",
        ),
        (
            "add allow ip6 from 2001:db8::1/32 to me6 out xmit tun*",
            "00100 allow ip6 from 2001:db8::/32 to me6 out xmit tun*",
        ),
        (
            "add allow tcp from any to any tcpflags syn,!ack iptos lowdelay dscp ef,10",
            "00100 allow tcp from any to any tcpflags syn,!ack iptos lowdelay dscp af11,ef",
        ),
        (
            "add allow in fragment ipv6 src-ipv6 ::1 dst-ipv6 ::2 dscp be,63,cs1 limit all 5",
            "00100 allow in frag ip6 src-ip ::1 dst-ip ::2 dscp be,cs1,63 limit src-addr src-port dst-addr dst-port 5 :default",
        ),
        ("add allow // all", "00100 allow // all"),
        ("add check-state :any // states", "00100 check-state :any // states"),
        (
            "add deny ip from 1.2.3.4:255.0.255.0 to table(t,1.2.3.4)",
            "00100 deny ip from 1.0.3.0:255.0.255.0 to table(t,16909060)",
        ),
        (
            "add deny ip from any to any { lookup src-ip bad or not lookup dst-ip 2 } in",
            "00100 deny ip from any to any { lookup src-ip bad or not lookup dst-ip 2 } in",
        ),
        (
            "add deny ip from any to any lookup src-ip4:255.0.255.0 t lookup dst-ip6:ffff:: t lookup dst-ip4 t lookup src-ip6 t",
            "00100 deny ip from any to any lookup src-ip4:255.0.255.0 t lookup dst-ip6:ffff:: t lookup dst-ip4 t lookup src-ip6 t",
        ),
        (
            "add deny ip from any to any lookup dst-port:31 n lookup src-port n not lookup dscp:0xF0 n lookup rulenum n",
            "00100 deny ip from any to any lookup dst-port:0x1f n lookup src-port n not lookup dscp:0xf0 n lookup rulenum n",
        ),
        (
            "add allow tcp from any to any { dst-port 80 or src-port 80 } established",
            "00100 allow tcp from any to any { dst-port 80 or src-port 80 } established",
        ),
    ] {
        assert_eq!(printed(command), expected, "{command}");
        assert_eq!(printed(&format!("add {expected}")), expected, "what is printed is read again");
    }
}

#[test]
fn errors_name_file_line_and_column_and_what_is_supported() {
    for (script, expected) in [
        (
            "add 100 pipe 1 ip from any to any",
            "f:1:9: `pipe` is not supported (shaping (dummynet)); allow, deny,",
        ),
        (
            "add allow ip from any to any\nadd allow tcp from any",
            "f:2:23: the end of the command stands where `to` must",
        ),
        ("add allow xyz from any to any", "f:1:11: `xyz` is not supported; options are in, out,"),
        ("add allow ip from any to any uid root", "f:1:30: `uid` is not supported; options are"),
        (
            "add allow ip from any to any lookup uid 1",
            "f:1:37: `lookup uid` is not supported; src-ip, dst-ip,",
        ),
        (
            "add allow ip from any to any lookup src-ip:255.0.0.0 t",
            "f:1:37: `src-ip:255.0.0.0` is not supported; an address has a mask as src-ip4 or src-ip6",
        ),
        (
            "add allow ip from any to any lookup dst-ip4:8 t",
            "f:1:37: `dst-ip4:8` has no mask; write a mask such as 255.255.255.0",
        ),
        ("add allow ip from any to any lookup dscp:-1 t", "f:1:37: `dscp:-1` has no mask; write a number"),
        (
            "add allow ip from any to table(t) lookup dscp t",
            "f:1:47: table t holds addresses, not numbers; use another one",
        ),
        (
            "table t create type number\nadd allow ip from any to table(t)",
            "f:2:26: table t holds numbers, not addresses; use another one",
        ),
        (
            "add allow ip from any to any lookup dst-port t\ntable t create",
            "f:2:9: table t holds numbers, not addresses; use another one",
        ),
        (
            "table t add 80\ntable t add 192.0.2.1",
            "f:2:13: `192.0.2.1` is not a number; write a number from 0 to",
        ),
        ("table t add 192.0.2.1\ntable t add 80", "f:2:13: `80` is no prefix"),
        ("table t add 80\ntable t swap u", "f:2:14: there is no table u; create it before"),
        (
            "table t add 80\ntable u create\ntable t swap u",
            "f:3:14: table u holds addresses, not numbers; use another one",
        ),
        ("table t add ffff:ffff:ffff:ffff:ffff:ffff:0:50", "f:1:13: `ffff:"),
        (
            "add allow ip from any to any lookup src-ip",
            "f:1:43: the command ends where the name of a table must follow",
        ),
        ("add allow ip from host.example to any", "f:1:19: `host.example` is no address"),
        (
            "add 70000 allow ip from any to any",
            "f:1:5: `70000` is not a rule's number; write a number from 0 to 65534",
        ),
        ("$fwcmd add allow ip from any to any", "f:1:1: no variable `fwcmd`"),
        ("add allow ip from any to any via 'em0 em1'", "f:1:34: no name, number or address is empty"),
        ("add allow ip from any to any via em'\r'0", "f:1:34: no name, number or address is empty"),
        ("add allow ip from any to any via \"\"", "f:1:34: no name, number or address is empty"),
        ("echo hello", "f:1:1: `echo` is not supported in a script"),
        ("pipe 1 config bw 1Mbit/s", "f:1:1: `pipe` is not supported in a script"),
        ("add allow icmp from any to any 80", "f:1:32: this protocol has no ports"),
        (
            "add unreach needfrag 1400 ip from any to any",
            "f:1:22: `1400` is not supported: answers state no MTU",
        ),
        (
            "add unreach 255 ip from any to any",
            "f:1:13: `255` is no code; write a name such as port, or a number up",
        ),
        ("add unreach6 255 ip from any to any", "f:1:14: `255` is no code; write no-route,"),
        ("table 1 create type iface", "f:1:21: `type iface` is not supported"),
    ] {
        let error = IpfwConfig::load("f", script).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{script}\n  {error}\n  {expected}");
    }
}

#[test]
fn commands_change_rules_sets_and_tables() {
    let script = "add 10 set 1 allow ip from any to any\nadd 20 set 2 deny ip from any to any\nadd count ip from any to any\n\
                  set disable 1\nset swap 1 2\nset move rule 120 to 5\ndelete 10\n\
                  table block create type addr\ntable block add 192.0.2.1/24 5 198.51.100.1\ntable block delete 198.51.100.1\n";
    let config = IpfwConfig::load("f", script).unwrap();
    let rules: Vec<_> = config.rules.iter().map(|rule| (rule.number, rule.set)).collect();
    assert_eq!(rules, [(20, 1), (120, 5)]);
    assert_eq!(config.to_string(), "00120 count ip from any to any\n65535 deny ip from any to any\n");
    let entries: Vec<_> =
        config.tables["block"].entries.iter().map(|((a, l), v)| format!("{a}/{l} {v}")).collect();
    assert_eq!(entries, ["192.0.2.0/24 5"]);
}

#[test]
fn tables_are_swapped_and_may_be_made_anew_with_another_type() {
    let entries = |script: &str, name: &str| {
        let config = IpfwConfig::load("f", script).unwrap();
        let set = RuleSet::new(config.lower(&Interfaces::default())).unwrap();
        let id = usize::from(set.table(name).unwrap().id.0);
        set.tables()[id].entries().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let script = "table a create type number\ntable a add 80 0 443 7\ntable b add 22\ntable a swap b\n";
    assert_eq!(entries(script, "a"), ["22"]);
    assert_eq!(entries(script, "b"), ["80", "443=7"]);
    assert_eq!(entries(&format!("{script}table a swap a\n"), "a"), ["22"]);
    let again = "add deny ip from any to table(t)\nflush\ntable t create type number\ntable t destroy\ntable t add 10.0.0.0/8";
    assert_eq!(entries(again, "t"), ["10.0.0.0/8"]);
    let open = "table t flush\ntable t create type number\ntable t add 80";
    assert_eq!(entries(open, "t"), ["80"]);
    let flushed = "table t flush\ntable u add 80\ntable t swap u";
    assert_eq!((entries(flushed, "t"), entries(flushed, "u")), (vec!["80".into()], vec![]));
    let named = "add deny ip from any to table(current)\ntable new add 10.0.0.0/8\ntable current swap new";
    assert_eq!(entries(named, "current"), ["10.0.0.0/8"]);
}

/// A line that was cut short would match all packets.
#[test]
fn rules_without_anything_to_match_are_refused() {
    for rule in [
        "allow",
        "allow log",
        "deny log logamount 5",
        "5 set 3 deny",
        "skipto 5",
        "unreach port",
        "count tag 7",
    ] {
        let error = IpfwConfig::load("f", &format!("add {rule}")).unwrap_err().to_string();
        assert!(error.contains("the rule ends where what it matches must follow"), "{rule}: {error}");
    }
    assert!(IpfwConfig::load("f", "add check-state\nadd allow in").is_ok());
}

#[test]
fn numbers_that_ipfw_refuses_are_refused() {
    for (rule, message) in [
        ("icmp from any to any icmptypes 8,32", "write numbers up to 31"),
        ("tcp from any to any limit src-addr 0", "write a number from 1 to 65534"),
        ("tcp from any to any limit src-addr 65535", "write a number from 1 to 65534"),
    ] {
        let error = IpfwConfig::load("f", &format!("add allow {rule}")).unwrap_err().to_string();
        assert!(error.contains(message), "{rule}: {error}");
    }
    for target in ["0", "65535"] {
        let error = IpfwConfig::load("f", &format!("add skipto {target} ip from any to any")).unwrap_err();
        assert!(error.to_string().starts_with("f:1:12: "), "{error}");
    }
    let error = IpfwConfig::load("f", "add check-state udp from any to any").unwrap_err().to_string();
    assert!(error.starts_with("f:1:17: `check-state` looks at all packets"), "{error}");
}

#[test]
fn more_tags_than_a_packet_has_room_for_are_refused() {
    let rules = |count: u16, test: &str| {
        let set: String =
            (1..=count).map(|tag| format!("add count tag {tag} ip from any to any\n")).collect();
        IpfwConfig::load("f", &format!("{set}add deny ip from any to any tagged {test}\n"))
    };
    assert!(rules(16, "1-65534").is_ok() && rules(100, "1,5-7").is_ok());
    let error = rules(17, "1-65534").unwrap_err().to_string();
    assert!(error.starts_with("f:18:36: rules set and ask about more than 16 different tags"), "{error}");
    for tags in ["0", "5,65535", "a", "3-2"] {
        assert!(rules(1, tags).is_err(), "{tags}");
    }
}

/// Each term of several tests may multiply those before it.
#[test]
fn or_blocks_cannot_fill_the_memory() {
    let block = |terms: Vec<String>| format!("add allow tcp from any to any {{ {} }}", terms.join(" or "));
    let named =
        |number| FilterInterface { name: format!("em{number}"), number, ..FilterInterface::default() };
    let interfaces = Interfaces((0..60).map(named).collect());
    let clauses = |script: &str| {
        let parts = IpfwConfig::load("f", script).unwrap().lower(&interfaces);
        parts.rules[0].clauses.iter().map(|clause| clause.0.len()).collect::<Vec<_>>()
    };
    let of = |one: &str| block((0..60).map(|number| format!("{one}{number}")).collect());
    assert_eq!(clauses(&of("xmit em")), [1, 60, 1], "{}", of("xmit em"));
    assert_eq!(clauses(&of("recv em")), [1, 60]);
    let products = |count| {
        let not = |number: u32| format!("not dst-port {},{}", 2 * number, 2 * number + 1);
        block((1..=count).map(not).collect())
    };
    assert_eq!(clauses(&products(10)).len(), 1 + 1024);
    for script in [products(11), products(500)] {
        let error = IpfwConfig::load("f", &script).unwrap_err().to_string();
        let expected = "the rule stands for more than 16384 tests; write several rules";
        assert!(error.starts_with("f:1:") && error.contains(expected), "{error}");
    }
}

#[test]
fn variables_cannot_fill_the_memory() {
    let doubled = format!("a={}\n{}", "x".repeat(16), "a=$a$a\n".repeat(60));
    let error = IpfwConfig::load("f", &doubled).unwrap_err().to_string();
    assert!(error.starts_with("f:13:") && error.contains("longer than 65536 characters"), "{error}");
    let long = format!("a={}\n{}", "x".repeat(60_000), "add deny ip from $a to any\n".repeat(2_000));
    let error = IpfwConfig::load("f", &long).unwrap_err().to_string();
    assert!(error.len() < 300, "{error}");
}
