// Looks at all that can differ between two of its runs.
use std::collections::HashMap;
use std::io::Read;
use std::time::{Duration, Instant, SystemTime};

fn main() {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).unwrap();
    let began = Instant::now();
    std::thread::sleep(Duration::from_millis(10));
    let mut m = HashMap::new();
    for i in 0..20 {
        m.insert(i.to_string(), i);
    }
    println!("{} {:?} {:?} {:?}", input, began.elapsed(), SystemTime::now(), m);
    if std::fs::write("/work/file", format!("{:?}", m.keys())).is_ok() {
        println!("{:?}", std::fs::metadata("/work/file").unwrap().modified());
    }
}
