// The n-body simulation of the planets: floating point in a loop without calls.
#[derive(Clone, Copy)]
struct Body {
    p: [f64; 3],
    v: [f64; 3],
    m: f64,
}

const SOLAR: f64 = 4.0 * std::f64::consts::PI * std::f64::consts::PI;
const YEAR: f64 = 365.24;

fn body(p: [f64; 3], v: [f64; 3], m: f64) -> Body {
    Body { p, v: [v[0] * YEAR, v[1] * YEAR, v[2] * YEAR], m: m * SOLAR }
}

fn energy(b: &[Body]) -> f64 {
    let mut e = 0.0;
    for i in 0..b.len() {
        e += 0.5 * b[i].m * b[i].v.iter().map(|x| x * x).sum::<f64>();
        for j in i + 1..b.len() {
            let d: f64 = (0..3).map(|k| (b[i].p[k] - b[j].p[k]).powi(2)).sum();
            e -= b[i].m * b[j].m / d.sqrt();
        }
    }
    e
}

fn main() {
    let n: u32 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1_000_000);
    let mut b = [
        body([0.0; 3], [0.0; 3], 1.0),
        body([4.84143144246472082945e+00, -1.16032004402742839362e+00, -1.03622044471123109494e-01],
             [1.66007664274403694959e-03, 7.69901118419740425080e-03, -6.90460016972063023554e-05], 9.54791938424326609124e-04),
        body([8.34336671824457987790e+00, 4.12479856412430479268e+00, -4.03523417114321381293e-01],
             [-2.76742510726411878290e-03, 4.99852801234917238954e-03, 2.30417297573763929463e-05], 2.85885980666130812119e-04),
        body([1.28943695621391310164e+01, -1.51111514016986312525e+01, -2.23307578892655734398e-01],
             [2.96460137564761618652e-03, 2.37847173959480950306e-03, -2.96589568540237556131e-05], 4.36624404335156298062e-05),
        body([1.53796971148509165498e+01, -2.59193146099879641146e+01, 1.79258772950371181757e-01],
             [2.68067772490389322511e-03, 1.62824170038242295430e-03, -9.51592254519715870971e-05], 5.15138902046611451304e-05),
    ];
    for k in 0..3 {
        let m: f64 = b.iter().map(|x| x.v[k] * x.m).sum();
        b[0].v[k] = -m / SOLAR;
    }
    println!("{:.9}", energy(&b));
    for _ in 0..n {
        for i in 0..5 {
            for j in i + 1..5 {
                let (mut d, mut s) = ([0.0; 3], 0.0);
                for k in 0..3 {
                    d[k] = b[i].p[k] - b[j].p[k];
                    s += d[k] * d[k];
                }
                let mag = 0.01 / (s * s.sqrt());
                let (mi, mj) = (b[i].m * mag, b[j].m * mag);
                for k in 0..3 {
                    b[i].v[k] -= d[k] * mj;
                    b[j].v[k] += d[k] * mi;
                }
            }
        }
        for x in b.iter_mut() {
            for k in 0..3 {
                x.p[k] += 0.01 * x.v[k];
            }
        }
    }
    println!("{:.9}", energy(&b));
}
