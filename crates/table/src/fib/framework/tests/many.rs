//! Many tables by number.

use super::*;
use crate::fib::registry::Registered;

fn change(prefix: &str, next_hop: Option<u16>) -> Change<u32> {
    Change { prefix: prefix.parse().unwrap(), next_hop: next_hop.map(NextHop) }
}

#[test]
fn tables_are_served_independently() {
    let mut tables = Tables::new(ms(0), Settings::default());
    (0..10).for_each(|number| tables.create(number));
    let mut readers: Vec<Reader<u32>> = (0..10).map(|number| tables.inet.reader(number).unwrap()).collect();
    for number in 0..10u32 {
        let route = change("198.18.0.0/15", Some(number as u16 + 1));
        tables.inet.apply(ms(5), number, &[route], Origin::Protocol).unwrap();
    }
    for (number, reader) in (1..).zip(&mut readers) {
        assert_eq!(reader.fib().lookup(0xc612_0001), NextHop(number));
    }
    tables.inet.force(ms(6), 3, "radix").unwrap();
    let algorithm = |tables: &Tables, number| tables.inet.attachment(number).unwrap().algorithm();
    assert_eq!((algorithm(&tables, 3), algorithm(&tables, 4)), (Some("radix"), Some("bsearch4")));
    tables.inet.release(ms(7), 3).unwrap();
    assert_eq!(algorithm(&tables, 3), Some("bsearch4"));
    tables.remove(4).unwrap();
    assert_eq!(readers[4].fib().lookup(0xc612_0001), NextHop::NONE, "a removed table has no routes");
    assert_eq!(tables.remove(4), Err(NoSuchTable(4)));
    assert!(tables.inet.rib(4).is_none() && tables.inet.reader(4).is_err());
    let lines: Vec<String> = tables.inet.log().iter().map(ToString::to_string).collect();
    assert_eq!(lines[0], "[0.000000] [fib_algo] fib_module_register: attaching radix to inet");
    assert!(lines.contains(
        &"[0.006000] [fib_algo] inet.3 (bsearch4#1) rebuild_fd_flm: switching algo to radix".into()
    ));
}

#[test]
fn a_job_of_a_removed_table_is_not_that_of_the_next_one() {
    let modules: [Module<u32>; 1] = [Scripted::new("scripted", 9, Outcome::Applied)];
    let settings = Settings { compile: Compile::Elsewhere, ..Settings::default() };
    let mut tables = FamilyTables::new(ms(0), &modules, Arc::new(settings));
    let mut job = |hop: u16| {
        tables.remove(7).ok();
        tables.create(7);
        tables.apply(ms(0), 7, &[change("10.0.0.0/8", Some(hop))], Origin::Protocol).unwrap();
        tables.jobs(ms(0)).remove(0).1
    };
    let [old, new] = [1, 2].map(&mut job);
    tables.offer(ms(1), 7, old.run()).unwrap();
    assert!(!tables.attachment(7).unwrap().is_synced());
    tables.offer(ms(2), 7, new.run()).unwrap();
    assert!(tables.attachment(7).unwrap().is_synced());
    assert_eq!(tables.reader(7).unwrap().fib().lookup(0x0a00_0001), NextHop(2));
}

#[test]
fn the_generation_changes_when_a_table_is_removed() {
    let modules: [Module<u32>; 1] = [Scripted::new("scripted", 9, Outcome::Applied)];
    let mut tables = FamilyTables::new(ms(0), &modules, Arc::default());
    tables.create(7);
    tables.apply(ms(0), 7, &[change("10.0.0.0/8", Some(1))], Origin::Protocol).unwrap();
    let reader = tables.reader(7).unwrap();
    let kept = reader.generation();
    tables.remove(7).unwrap();
    assert_ne!(reader.generation(), kept, "an answer that was kept is out of date");
}

#[test]
fn modules_of_a_family_and_of_one_table() {
    let (one, two) = (Scripted::new("one", 10, Outcome::Applied), Scripted::new("two", 90, Outcome::Applied));
    let modules: [Module<u32>; 1] = [one];
    let mut tables = FamilyTables::new(ms(0), &modules, Arc::default());
    (0..3).for_each(|number| tables.create(number));
    for number in 0..2 {
        tables.apply(ms(0), number, &[change("10.0.0.0/8", Some(1))], Origin::Protocol).unwrap();
    }
    let names = |tables: &FamilyTables<u32>| {
        [0, 1, 2].map(|number| tables.attachment(number).and_then(Attachment::algorithm))
    };
    tables.attach_to(ms(1), 1, two).unwrap();
    assert_eq!(names(&tables), [Some("one"), Some("two"), None]);
    tables.attach(ms(2), two).unwrap();
    assert_eq!(names(&tables), [Some("two"), Some("two"), None]);
    tables.detach_from(ms(3), 0, "one").unwrap();
    assert_eq!(tables.detach(ms(3), "two"), Err(ModuleError::Last), "table 0 has no other");
    tables.attach_to(ms(4), 0, one).unwrap();
    tables.detach(ms(4), "two").unwrap();
    tables.apply(ms(5), 2, &[change("10.0.0.0/8", Some(1))], Origin::Protocol).unwrap();
    assert_eq!(names(&tables), [Some("one"); 3]);
    assert_eq!(tables.attach_to(ms(5), 9, two), Err(NoSuchTable(9).into()));
    assert_eq!(tables.attach_to(ms(5), 0, one), Err(ModuleError::Known.into()));
}

#[test]
fn only_tables_with_deadlines_are_visited() {
    let module = Scripted::new("scripted", 9, Outcome::Rebuild);
    let modules: [Module<u32>; 1] = [module];
    let settings = Settings { compile: Compile::Elsewhere, ..Settings::default() };
    let mut tables = FamilyTables::new(ms(0), &modules, Arc::new(settings));
    (0..4_096).for_each(|number| tables.create(number));
    assert_eq!((tables.len(), tables.next_deadline()), (4_096, None));
    for number in [7, 4_000] {
        tables.apply(ms(1), number, &[change("10.0.0.0/8", Some(2))], Origin::Protocol).unwrap();
    }
    let jobs = tables.jobs(ms(1));
    assert_eq!(jobs.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [7, 4_000]);
    assert_eq!(tables.next_deadline(), None, "their jobs are under way");
    tables.remove(7).unwrap();
    let offered: Vec<_> =
        jobs.into_iter().map(|(number, job)| tables.offer(ms(9), number, job.run())).collect();
    assert_eq!(offered, [Err(NoSuchTable(7)), Ok(())]);
    assert_eq!(tables.reader(4_000).unwrap().fib().lookup(0x0a00_0001), NextHop(2));
    tables.apply(ms(100), 4_000, &[change("10.0.0.0/8", Some(3))], Origin::Protocol).unwrap();
    assert_eq!(tables.next_deadline(), Some(ms(100)));
    for (number, job) in tables.jobs(ms(100)) {
        tables.offer(ms(120), number, job.run()).unwrap();
    }
    assert_eq!((tables.next_deadline(), tables.attachment(4_000).unwrap().is_synced()), (None, true));
}

#[test]
fn changes_without_effect_are_ignored() {
    let module = Scripted::new("scripted", 9, Outcome::Rebuild);
    let modules: [Module<u32>; 1] = [module];
    let mut tables = FamilyTables::new(ms(0), &modules, Arc::default());
    tables.create(0);
    for second in 1..5 {
        let again = [change("10.0.0.0/8", Some(2)), change("10.1.0.0/16", None)];
        tables.apply(ms(second * 1_000), 0, &again, Origin::Static).unwrap();
        assert_eq!(module.state().compiled, 1);
    }
}

#[test]
fn settings_can_change() {
    let module = Scripted::new("scripted", 9, Outcome::Rebuild);
    let modules: [Module<u32>; 1] = [module];
    let mut tables = FamilyTables::new(ms(0), &modules, Arc::default());
    tables.create(0);
    let synced = |tables: &mut FamilyTables<u32>, now| {
        tables.apply(ms(now), 0, &[change("10.0.0.0/8", Some(now as u16))], Origin::Protocol).unwrap();
        tables.attachment(0).unwrap().is_synced()
    };
    assert!(synced(&mut tables, 1_000) && synced(&mut tables, 1_001) && !synced(&mut tables, 1_002));
    tables.configure(ms(1_003), Arc::new(Settings { bucket_time: Time::ZERO, ..Settings::default() }));
    tables.tick(ms(1_051));
    assert!(!tables.attachment(0).unwrap().is_synced());
    assert!(synced(&mut tables, 1_052) && synced(&mut tables, 1_053));
}

#[test]
fn the_oracle_is_no_module() {
    let tables = Tables::new(ms(0), Settings::default());
    assert_eq!(tables.inet.log().len() + 1, u32::ALGORITHMS.len());
    assert!(tables.inet6.is_empty());
}
