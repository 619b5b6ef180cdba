//! What the crate does beyond the vectors.

use openskill_guest::{json, rehearse, serve_on, typed, Answer, Call, Failure, Level, Value};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Deserialize, Serialize, PartialEq)]
struct Point {
    lat: f64,
    lon: f64,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Shape {
    Dot,
    Circle(f64),
    Box { w: u8, h: u8 },
    Line(Point, Point),
}

#[derive(Debug, Deserialize, PartialEq)]
struct Meters(u16);

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct Wide {
    small: i8,
    huge: u64,
    wide: i128,
    letter: Option<char>,
    at: Option<Point>,
    shapes: Vec<Shape>,
    pair: Option<(i64, String)>,
    by_name: BTreeMap<String, Vec<bool>>,
    far: Option<Meters>,
    any: Value,
    half: f32,
    nothing: (),
}

#[test]
fn takes() {
    let given = json!({"small": -128, "huge": u64::MAX, "wide": 1e3, "letter": "ä", "at": {"lat": 1, "lon": -0.5, "height": 2},
        "shapes": ["dot", {"circle": 1}, {"box": {"w": 255, "h": 2.0}}, {"line": [{"lat": 0, "lon": 0}, {"lat": 1, "lon": 1}]}, {"dot": null}],
        "pair": [3.0, "x"], "by_name": {"": [true]}, "far": 7, "any": [1, {"a": null}], "half": 0.5, "nothing": null, "unknown": 1});
    let got: Wide = typed(given, "").unwrap();
    let (o, p) = (Point { lat: 0.0, lon: 0.0 }, Point { lat: 1.0, lon: 1.0 });
    assert_eq!(
        got.shapes,
        [Shape::Dot, Shape::Circle(1.0), Shape::Box { w: 255, h: 2 }, Shape::Line(o, p), Shape::Dot]
    );
    assert_eq!((got.small, got.huge, got.wide, got.letter), (-128, u64::MAX, 1000, Some('ä')));
    assert_eq!((got.pair, got.far, got.any), (Some((3, "x".into())), Some(Meters(7)), json!([1, {"a": null}])));
    assert_eq!(got.at, Some(Point { lat: 1.0, lon: -0.5 }));
}

#[test]
fn refuses() {
    for (given, want) in [
        (json!({"small": 128}), "range small: must be an integer from -128 to 127"),
        (json!({"huge": -1}), "range huge: must be an integer from 0 to 18446744073709551615"),
        (json!({"huge": 1e300}), "range huge: must be an integer from 0 to 18446744073709551615"),
        (json!({"small": 0.5}), "type small: must be an integer"),
        (json!({"small": null}), "type small: must be an integer"),
        (json!({"at": {"lat": 1}}), "missing at.lon: required"),
        (json!({"at": {"lat": "1"}}), "type at.lat: must be a number"),
        (json!({"at": []}), "type at: must be an object"),
        (json!({"shapes": {}}), "type shapes: must be a list"),
        (json!({"shapes": ["square"]}), "unsupported shapes[0]: must be one of dot, circle, box, line"),
        (json!({"shapes": [1]}), "type shapes[0]: must be one of dot, circle, box, line"),
        (
            json!({"shapes": ["circle"]}),
            "type shapes[0]: must be an object with one field, which has what belongs to it",
        ),
        (json!({"shapes": ["dot", {"box": {"w": 256}}]}), "range shapes[1].box.w: must be an integer from 0 to 255"),
        (json!({"shapes": [{"box": {"w": 1}}]}), "missing shapes[0].box.h: required"),
        (json!({"shapes": [{"line": [1]}]}), "length shapes[0].line: must be a list of 2"),
        (json!({"shapes": [{"dot": 1}]}), "type shapes[0].dot: must be null"),
        (json!({"pair": [1]}), "length pair: must be a list of 2"),
        (json!({"pair": [1, 2]}), "type pair[1]: must be a string"),
        (json!({"by_name": {"b": 1, "a": [1]}}), "type by_name.a[0]: must be true or false"),
        (json!({"letter": "ab"}), "value letter: invalid value: string \"ab\", expected a character"),
        (json!({"far": 65536}), "range far: must be an integer from 0 to 65535"),
        (json!([]), "type input: must be an object"),
    ] {
        let failure = typed::<Wide>(given.clone(), "").unwrap_err();
        let details = failure.details.unwrap();
        let got = format!("{} {}", details["reason"].as_str().unwrap(), failure.message);
        assert_eq!((got.as_str(), failure.code.as_str()), (want, "INVALID_ARGUMENT"), "{given}");
        assert!(failure.message.starts_with(&format!("{}: ", details["field"].as_str().unwrap())));
    }
    let long = json!({ "é".repeat(100): 1 });
    let failure = typed::<BTreeMap<String, String>>(long, "of").unwrap_err();
    assert_eq!(failure.message, format!("of.{}: must be a string", "é".repeat(64)));
}

fn run<O: Serialize>(root: Option<&Path>, f: impl Fn(&Call) -> Result<O, Failure>) -> (Answer, Value) {
    let answer = serve_on(b"{\"input\": {}, \"skill_id\": \"s\"}", root, |call: &Call, _: Value| f(call));
    assert_eq!(answer.stdout.matches('\n').count(), 1, "{answer:?}");
    let value = serde_json::from_str(&answer.stdout).unwrap();
    (answer, value)
}

#[test]
fn answers() {
    let failed = json!({"code": "INTERNAL", "message": "the skill failed; its standard error says why", "details": {"reason": "failed"}});
    let number = |path: &str| json!({"code": "INTERNAL", "message": format!("{path}: NaN and infinite numbers are no JSON"), "details": {"field": path, "reason": "number"}});
    let no_object = json!({"code": "INTERNAL", "message": "data: must be an object", "details": {"field": "data", "reason": "type"}});

    #[derive(Serialize)]
    enum Odd {
        Tuple(f64, f32),
        Struct { x: Option<f64> },
        New(f64),
        Unit,
    }
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    for (value, path) in [
        (vec![Odd::Unit, Odd::Tuple(1.0, f32::NEG_INFINITY)], "data.a[1].Tuple[1]"),
        (vec![Odd::Struct { x: Some(nan) }], "data.a[0].Struct.x"),
        (vec![Odd::New(inf)], "data.a[0].New"),
    ] {
        let data = BTreeMap::from([("a", value)]);
        let (answer, got) = run(None, |_| Ok(&data));
        assert_eq!((answer.exit, &got["error"]), (1, &number(path)));
    }
    let (_, got) = run(None, |_| Ok(BTreeMap::from([(7, (1, nan))])));
    assert_eq!(got["error"], number("data.7[1]"));
    assert_eq!(run(None, |_| Ok([1])).1["error"], no_object);
    assert_eq!(run(None, |_| Ok(())).1["error"], no_object);
    assert_eq!(run(None, |_| Ok(Point { lat: 1.0, lon: -0.0 })).1["data"], json!({"lat": 1.0, "lon": -0.0}));

    let (answer, got) = run(None, |_| -> Result<Value, Failure> { Ok(json!({ "n": "1\n2".parse::<i64>()? })) });
    assert_eq!((answer.exit, &got["error"]), (1, &failed));
    assert_eq!(answer.stderr, "ERROR uncaught: invalid digit found in string\n");
    let (answer, got) = run(None, |_| Ok(BTreeMap::from([(vec![1], 1)])));
    assert_eq!(got["error"], failed);
    assert_eq!(answer.stderr, "ERROR uncaught: key must be a string\n");
    let (_, got) = run(None, |call| -> Result<Value, Failure> { Err(Failure::new("X", call.skill_id.clone())) });
    assert_eq!(got["error"], json!({"code": "X", "message": "s"}));
}

#[test]
fn logs() {
    let (answer, _) = run(None, |call| {
        call.log(Level::Debug, "a\r\n\u{1b}[31m\u{9b}\u{2028}😀", json!({ "l": ["\u{2029}<"] }));
        call.warn("w");
        call.error("e");
        Ok(json!({}))
    });
    let want = "DEBUG a\\u000d\\u000a\\u001b[31m\\u009b\\u2028😀 {\"l\":[\"\\u2029<\"]}\nWARN w\nERROR e\n";
    assert_eq!(answer.stderr, want);
}

#[test]
fn rehearsals_have_no_files() {
    let seen = RefCell::new(Vec::new());
    rehearse(
        |call: &Call, point: Point| {
            seen.borrow_mut().push(point.lat.to_string());
            seen.borrow_mut().push(call.read_data("data/a").unwrap_err().message);
            seen.borrow_mut().push(call.write_artifact("a", "").unwrap_err().message);
            Ok(json!({}))
        },
        json!({"lat": 1, "lon": 2}),
    );
    let want =
        ["1", "this skill was given no ./data folder to read", "this skill was given no scratch space to write to"];
    assert_eq!(*seen.borrow(), want);
}

/// A folder for one test, with data and work in it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("openskill-guest-{}-{name}", std::process::id()));
        fs::create_dir_all(path.join("granted/docs")).unwrap();
        fs::create_dir_all(path.join("work/folder")).unwrap();
        fs::write(path.join("secret"), "secret").unwrap();
        fs::write(path.join("granted/a"), b"a\0\xff").unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn reason<T>(result: Result<T, Failure>) -> String {
    match result {
        Ok(_) => String::new(),
        Err(failure) => format!("{} {}", failure.code, failure.details.unwrap()["reason"].as_str().unwrap()),
    }
}

#[cfg(unix)]
#[test]
fn data() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new("data");
    symlink(folder.0.join("granted"), folder.0.join("data")).unwrap();
    symlink(folder.0.join("secret"), folder.0.join("granted/link")).unwrap();
    symlink("..", folder.0.join("granted/docs/up")).unwrap();
    symlink("nowhere", folder.0.join("granted/dangling")).unwrap();
    run(Some(&folder.0), |call| {
        assert_eq!(call.read_data("./data/./a").unwrap(), b"a\0\xff");
        for (path, want) in [
            ("data/link", "FORBIDDEN_PATH link"),
            ("data/docs/up/a", "FORBIDDEN_PATH link"),
            ("data/dangling", "FORBIDDEN_PATH link"),
            ("data/docs", "INVALID_ARGUMENT no_file"),
            ("data/a/b", "NOT_FOUND not_found"),
            (&format!("data/{}", "x".repeat(300)), "NOT_FOUND not_found"),
            (&format!("data/{}", "x".repeat(1100)), "FORBIDDEN_PATH outside_data"),
            ("secret", "FORBIDDEN_PATH outside_data"),
        ] {
            let got = call.read_data(path);
            assert!(
                got.as_ref().unwrap_err().details.as_ref().unwrap()["path"].as_str().unwrap().chars().count() <= 200
            );
            assert_eq!(reason(got), want, "{path}");
        }
        Ok(json!({}))
    });
}

#[test]
fn artifacts() {
    let folder = Folder::new("artifacts");
    run(Some(&folder.0), |call| {
        let long = "é".repeat(101);
        for name in ["", ".", "..", "a..b", "/a", "a\\b", "a\0", long.as_str()] {
            assert_eq!(reason(call.write_artifact(name, "x")), "FORBIDDEN_PATH name", "{name:?}");
        }
        assert_eq!(reason(call.write_artifact("folder", "x")), "INTERNAL unwritable");
        call.write_artifact(&"é".repeat(100), "x")?;
        call.write_artifact("twice", "longer")?;
        call.write_artifact("twice", [0xff])?;
        Ok(json!({}))
    });
    assert_eq!(fs::read(folder.0.join("work/twice")).unwrap(), [0xff]);
}
