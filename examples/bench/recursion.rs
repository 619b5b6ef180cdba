// Naive Fibonacci, Ackermann and Tak: calls and nothing else.
use std::hint::black_box;

#[inline(never)]
fn fib(n: u32) -> u32 {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}

#[inline(never)]
fn ack(m: u32, n: u32) -> u32 {
    if m == 0 {
        n + 1
    } else if n == 0 {
        ack(m - 1, 1)
    } else {
        ack(m - 1, ack(m, n - 1))
    }
}

#[inline(never)]
fn tak(x: i32, y: i32, z: i32) -> i32 {
    if y >= x { z } else { tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y)) }
}

fn main() {
    let n: u32 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(33);
    println!("{}", fib(black_box(n)));
    println!("{}", ack(black_box(2), black_box(n * 20)));
    println!("{}", tak(black_box(18), black_box(12), black_box(6)));
}
