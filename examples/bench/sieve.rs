// The sieve of Eratosthenes, ten times: tight loops over memory.
fn main() {
    let n: usize = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(2_000_000);
    let mut count = 0;
    for _ in 0..10 {
        let mut composite = vec![false; n + 1];
        count = 0;
        for i in 2..=n {
            if !composite[i] {
                count += 1;
                let mut j = i * i;
                while j <= n {
                    composite[j] = true;
                    j += i;
                }
            }
        }
    }
    println!("{count}");
}
