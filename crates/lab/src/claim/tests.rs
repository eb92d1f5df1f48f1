use super::*;
use crate::record::Params;

const CSV: &str = "place,what,case,metric,at,published,to,rule,kind,why
Table I,time,tcp,transfer_s,delay_ms=5 ber=1e-6,10,,10 %,predicted,
Table I,range,tcp,transfer_s,delay_ms=6 ber=0,10,12,2 units,calibrated,
Table I,nothing of ours,udp,transfer_s,delay_ms=6 ber=0,10,12,no,calibrated,not played
";

fn record(delay_ms: u32, ber: f64, samples: &[f64]) -> Record {
    Record::of("tcp", Params::new().with("delay_ms", delay_ms).with("ber", ber), "transfer_s", "s", samples)
}

fn claim(published: Published, ours: &[f64], rule: Rule) -> Claim {
    Claim {
        what: "time".into(),
        place: "Table I".into(),
        published,
        ours: Ours::Figures(ours.iter().map(|ours| record(1, 0.0, &[*ours])).collect()),
        rule,
        kind: FigureKind::Predicted,
        why: "the reason".into(),
    }
}

#[test]
fn rules_judge_points_and_ranges_at_both_ends() {
    let range = Published::Range(10.0, 12.0);
    for (published, ours, rule, holds) in [
        (Published::Point(10.0), 11.0, Rule::Share(0.1), true),
        (Published::Point(10.0), 11.1, Rule::Share(0.1), false),
        (Published::Point(10.0), 9.0, Rule::Share(0.1), true),
        (Published::Point(10.0), 8.9, Rule::Share(0.1), false),
        (range, 13.2, Rule::Share(0.1), true),
        (range, 13.3, Rule::Share(0.1), false),
        (range, 8.9, Rule::Share(0.1), false),
        (range, 11.0, Rule::Share(0.0), true),
        (range, 14.0, Rule::Units(2.0), true),
        (range, 14.1, Rule::Units(2.0), false),
        (range, 7.9, Rule::Units(2.0), false),
        (Published::Point(1.5), 1.54, Rule::Printed(1), true),
        (Published::Point(1.5), 1.56, Rule::Printed(1), false),
        (Published::Point(3.0), 3.4, Rule::Printed(0), true),
        (Published::Point(3.0), 2.9, Rule::Below, true),
        (Published::Point(3.0), 3.0, Rule::Below, false),
        (Published::Point(3.0), 3.0, Rule::Above, false),
        (Published::Point(3.0), 3.1, Rule::Above, true),
    ] {
        let verdict = claim(published, &[ours], rule).verdict();
        assert_eq!(verdict == Verdict::Holds, holds, "{ours} {rule:?} of {published:?}");
    }
    // Each of several has to hold.
    let several = |ours: &[f64]| claim(Published::Point(10.0), ours, Rule::Share(0.1)).verdict();
    assert_eq!((several(&[9.5, 10.5]), several(&[9.5, 11.5])), (Verdict::Holds, Verdict::Misses));
    let criterion = |holds| claim(Published::Statement, &[1.0], Rule::Criterion(holds)).verdict();
    assert_eq!(criterion(None), Verdict::CannotTell);
    assert_eq!((criterion(Some(true)), criterion(Some(false))), (Verdict::Holds, Verdict::Misses));
    assert_eq!(claim(Published::Point(1.0), &[1.0], Rule::NotJudged).verdict(), Verdict::NotJudged);
}

#[test]
fn published_figures_find_their_records() {
    let mut records = vec![record(5, 1e-6, &[9.0, 10.0]), record(6, 0.0, &[15.0]), record(7, 0.0, &[1.0])];
    let claims = attach(CSV, &mut records);
    assert_eq!((claims.len(), published_figures(CSV)), (2, 3));
    assert_eq!((records[0].reference, records[0].source.as_deref()), (Some(10.0), Some("Table I")));
    assert_eq!((records[1].reference, records[1].kind), (Some(11.0), FigureKind::Calibrated));
    assert_eq!(records[2].reference, None);
    assert_eq!([claims[0].verdict(), claims[1].verdict()], [Verdict::Holds, Verdict::Misses]);
    assert_eq!((claims[0].ratio(), claims[1].ratio()), (Some(0.95), None));
    assert_eq!(count(&claims), "1 of 2");
}

#[test]
fn the_table_says_what_holds_and_why_it_does_not() {
    let claims = [
        claim(Published::Point(10.0), &[10.5], Rule::Share(0.1)),
        claim(Published::Range(10.0, 12.0), &[14.0, 16.0], Rule::Units(2.0)),
        claim(Published::Point(10.0), &[10.0], Rule::NotJudged),
        claim(Published::Point(10.0), &[10.0], Rule::Printed(0)),
        Claim {
            ours: Ours::Words("It does.".into()),
            ..claim(Published::Statement, &[], Rule::Criterion(None))
        },
    ];
    let table = table("", &claims);
    let column = |at: usize| table.rows.iter().map(|row| row[at].text.as_str()).collect::<Vec<_>>();
    assert_eq!(column(0)[4], "time It does.");
    assert_eq!(column(2), ["10", "10 to 12", "10", "10", ""]);
    assert_eq!(column(3), ["10.5", "14 to 16", "10", "10", ""]);
    let verdicts = [
        "within 10 %",
        "outside 2: the reason",
        "not judged: the reason",
        "yes as printed",
        "too few runs: the reason",
    ];
    assert_eq!(column(5), verdicts);
}

#[test]
#[should_panic(expected = "is not a valid rule")]
fn a_rule_that_is_none_is_refused() {
    attach(&CSV.replace("10 %", "about"), &mut [record(5, 1e-6, &[9.0])]);
}

#[test]
#[should_panic(expected = "unknown field `palce`")]
fn an_unknown_column_is_refused() {
    attach(&CSV.replace("place,", "palce,"), &mut []);
}
