// A small skill: reads a name from standard input and greets it.
use std::io::{Read, Write};

fn main() {
    let mut name = String::new();
    std::io::stdin().read_to_string(&mut name).unwrap();
    let greeting = format!("hello, {}\n", name.trim());
    std::io::stdout().write_all(greeting.as_bytes()).unwrap();
}
