//! Reloads of the configuration.

use fullview_testnet::eventually;

use super::{Operated, may_operate};

const CONFIG: &str = r#"[router]
interfaces = ["eth1", "eth2"]
engine = "threads"
[control]
socket = "FOLDER/control.sock"
"#;

#[test]
fn a_configuration_is_reloaded_or_refused_as_a_whole() {
    if !may_operate() {
        return;
    }
    let operated = Operated::configured(CONFIG);
    operated.forwards();
    let file = operated.path("router.toml");
    let write = |more: &str| {
        let text = CONFIG.replace("FOLDER", operated.folder.path().to_str().unwrap()) + more;
        std::fs::write(&file, text).unwrap();
    };
    write("[interface.eth1]\nsource-check = \"strict\"\n");
    assert!(operated.ask("reload").contains("is in force"));
    let checked = operated.json("interfaces");
    assert_eq!(checked[0]["source-check"], "strict", "{checked}");
    write("[metrics]\nlisten = \"127.0.0.1:0\"\n");
    let (success, said) = operated.try_ask("reload");
    assert!(!success && said.contains("metrics cannot change while the router runs"), "{said}");
    write("[interfaces]\n");
    let (success, said) = operated.try_ask("reload");
    assert!(!success && said.contains("line 6") && said.contains("interfaces"), "{said}");
    assert_eq!(operated.exit_code("reload"), Some(2));
    assert_eq!(
        operated.json("interfaces")[0]["source-check"],
        "strict",
        "the configuration before stays in force"
    );
    std::fs::write(
        &file,
        CONFIG
            .replace("FOLDER", operated.folder.path().to_str().unwrap())
            .replace("[control]", "algorithm = \"dxr\"\n[control]"),
    )
    .unwrap();
    operated.router.signal("HUP");
    let pinned = || operated.json("fib")[0]["algorithm"] == "dxr";
    assert!(eventually(pinned), "{}", operated.router.output());
    assert_eq!(operated.json("interfaces")[0]["source-check"], "off");
    operated.forwards();
    assert!(operated.ask("show events").contains("reload   refused"));
    assert_eq!(operated.router.end("TERM").0, Some(0));
}

#[test]
fn sighup_without_a_configuration_file_is_refused() {
    if !may_operate() {
        return;
    }
    let mut operated = Operated::start(&[]);
    operated.router.signal("HUP");
    operated.router.wait_for("reload refused: the router was started without --config");
    operated.forwards();
    assert_eq!(operated.router.end("TERM").0, Some(0));
}

#[test]
#[cfg(feature = "bpf")]
fn an_algorithm_is_refused_where_the_engine_has_its_own() {
    if !may_operate() {
        return;
    }
    let operated = Operated::configured(&CONFIG.replace("threads", "auto"));
    operated.forwards();
    let text = CONFIG.replace("FOLDER", operated.folder.path().to_str().unwrap());
    let named = text.replace("\"threads\"", "\"auto\"\nalgorithm = \"dxr\"");
    std::fs::write(operated.path("router.toml"), named).unwrap();
    let (success, said) = operated.try_ask("reload");
    assert!(!success && said.contains("the program in the kernel has algorithms of its own"), "{said}");
    operated.forwards();
}

#[test]
fn no_packet_is_lost_while_the_configuration_is_reloaded() {
    if !may_operate() {
        return;
    }
    let operated = Operated::configured(CONFIG);
    operated.forwards();
    let (left, right) = (operated.lab.left.udp("10.0.1.2:0"), operated.lab.right.udp("10.0.2.2:9"));
    let texts = ["", "[interface.eth1]\nsource-check = \"strict\"\n"];
    for round in 0..10 {
        let text = CONFIG.replace("FOLDER", operated.folder.path().to_str().unwrap()) + texts[round % 2];
        std::fs::write(operated.path("router.toml"), text).unwrap();
        (0..5).for_each(|_| assert!(left.send_to(b"before", "10.0.2.2:9").is_ok()));
        operated.ask("reload");
        (0..5).for_each(|_| assert!(left.send_to(b"after", "10.0.2.2:9").is_ok()));
    }
    let mut heard = [0; 64];
    let arrived = (0..100).take_while(|_| right.recv_from(&mut heard).is_ok()).count();
    assert_eq!(arrived, 100, "{}", operated.ask("show counters"));
}
