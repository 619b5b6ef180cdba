//! The numbers of bc, and the functions of its library.

use num_bigint::{BigInt, Sign};

/// A decimal number: digits / 10^scale.
#[derive(Clone)]
pub struct Number {
    pub digits: BigInt,
    pub scale: usize,
}

pub enum Stop {
    Error(String),
    Quit,
    Break,
}

pub type Outcome<T> = std::result::Result<T, Stop>;

pub fn wrong<T>(why: &str) -> Outcome<T> {
    Err(Stop::Error(why.into()))
}

pub fn ten(n: usize) -> BigInt {
    BigInt::from(10).pow(n as u32)
}

impl Number {
    pub fn new(n: i64) -> Self {
        Number { digits: n.into(), scale: 0 }
    }

    pub fn to(&self, scale: usize) -> Number {
        let digits = if scale >= self.scale { &self.digits * ten(scale - self.scale) } else { &self.digits / ten(self.scale - scale) };
        Number { digits, scale }
    }

    pub fn zero(&self) -> bool {
        self.digits.sign() == Sign::NoSign
    }

    pub fn same(&self, b: &Number) -> (Number, Number) {
        let scale = self.scale.max(b.scale);
        (self.to(scale), b.to(scale))
    }

    pub fn add(&self, b: &Number) -> Number {
        let (a, b) = self.same(b);
        Number { digits: a.digits + b.digits, scale: a.scale }
    }

    pub fn neg(&self) -> Number {
        Number { digits: -&self.digits, scale: self.scale }
    }

    pub fn mul(&self, b: &Number, scale: usize) -> Number {
        let whole = Number { digits: &self.digits * &b.digits, scale: self.scale + b.scale };
        whole.to(whole.scale.min(scale.max(self.scale).max(b.scale)))
    }

    pub fn div(&self, b: &Number, scale: usize) -> Outcome<Number> {
        if b.zero() {
            return wrong("Runtime error (func=(main), adr=3): Divide by zero");
        }
        Ok(Number { digits: self.to(scale + b.scale).digits / &b.digits, scale })
    }

    pub fn rem(&self, b: &Number, scale: usize) -> Outcome<Number> {
        let q = self.div(b, scale)?;
        let most = (scale + b.scale).max(self.scale);
        let product = Number { digits: &q.digits * &b.digits, scale: q.scale + b.scale };
        Ok(self.add(&product.neg()).to(most))
    }

    pub fn pow(&self, n: i64, scale: usize) -> Outcome<Number> {
        if n.unsigned_abs() > 1_000_000 {
            return wrong("Runtime error (func=(main), adr=3): exponent too large in raise");
        }
        let up = Number { digits: self.digits.pow(n.unsigned_abs() as u32), scale: self.scale * n.unsigned_abs() as usize };
        if n < 0 {
            return Number::new(1).div(&up, scale);
        }
        Ok(up.to(up.scale.min(scale.max(self.scale))))
    }

    pub fn sqrt(&self, scale: usize) -> Outcome<Number> {
        if self.digits.sign() == Sign::Minus {
            return wrong("Runtime error (func=(main), adr=3): Square root of a negative number");
        }
        let scale = scale.max(self.scale);
        Ok(Number { digits: self.to(2 * scale).digits.sqrt(), scale })
    }

    pub fn integer(&self) -> i64 {
        i64::try_from(&self.to(0).digits).unwrap_or(i64::MAX)
    }

    /// The number in a base, without the zero before the point.
    pub fn text(&self, base: u32) -> String {
        let negative = self.digits.sign() == Sign::Minus;
        let unit = ten(self.scale);
        let whole = self.digits.magnitude() / unit.magnitude();
        let mut rest = BigInt::from(self.digits.magnitude() % unit.magnitude());
        let mut text = if whole == 0u32.into() && self.scale > 0 && !self.zero() {
            String::new()
        } else if base <= 36 {
            whole.to_str_radix(base).to_uppercase()
        } else {
            whole.to_string()
        };
        if self.scale > 0 && !self.zero() {
            text.push('.');
            if base == 10 {
                text.push_str(&format!("{:0>width$}", rest.to_string(), width = self.scale));
            } else {
                // As many digits as say what the decimal ones said.
                let mut said = BigInt::from(1);
                while said < unit {
                    rest *= base;
                    let digit = (&rest / &unit).to_string().parse::<u32>().unwrap_or(0);
                    rest %= &unit;
                    text.push(char::from_digit(digit, 36).unwrap_or('?').to_ascii_uppercase());
                    said *= base;
                }
            }
        }
        if negative {
            text.insert(0, '-');
        }
        text
    }
}

/// The sum of a series: each term is the last one times x2 and divided by what of gives for its index.
fn series(first: &Number, x2: &Number, scale: usize, of: impl Fn(i64) -> i64, share: impl Fn(i64) -> i64) -> Outcome<Number> {
    let (mut sum, mut term, mut i) = (first.clone(), first.clone(), 0);
    while !term.zero() {
        i += 1;
        term = term.mul(x2, scale).to(scale).div(&Number::new(of(i)), scale)?;
        sum = sum.add(&term.div(&Number::new(share(i)), scale)?);
    }
    Ok(sum)
}

pub fn exp(x: &Number, scale: usize) -> Outcome<Number> {
    let whole = x.integer().unsigned_abs();
    if whole > 100_000 {
        return wrong("Runtime error (func=e, adr=3): exponent too large");
    }
    let halvings = 64 - (whole + 1).leading_zeros() as usize + 4;
    let work = scale + whole as usize / 2 + 20;
    let small = x.div(&Number { digits: BigInt::from(1) << halvings, scale: 0 }, work)?;
    let mut e = series(&Number::new(1).to(work), &small, work, |i| i, |_| 1)?;
    for _ in 0..halvings {
        e = e.mul(&e, work).to(work);
    }
    Ok(e.to(scale))
}

pub fn log(x: &Number, scale: usize) -> Outcome<Number> {
    if x.digits.sign() != Sign::Plus {
        return Ok(Number { digits: -ten(scale) * ten(5), scale });
    }
    let work = scale + 20;
    let (mut root, mut factor) = (x.to(work.max(x.scale)), BigInt::from(2));
    let near = |r: &Number| (&r.digits - ten(r.scale)).magnitude() * 10u32 < *ten(r.scale).magnitude();
    while !near(&root) {
        root = root.sqrt(work)?;
        factor *= 2;
    }
    let one = Number::new(1);
    let y = root.add(&one.neg()).div(&root.add(&one), work)?;
    let sum = series(&y, &y.mul(&y, work).to(work), work, |_| 1, |i| 2 * i + 1)?;
    Ok(Number { digits: sum.digits * factor, scale: sum.scale }.to(scale))
}

pub fn atan(x: &Number, scale: usize) -> Outcome<Number> {
    let work = scale + 20;
    let (mut y, mut factor) = (x.to(work.max(x.scale)), BigInt::from(1));
    while y.digits.magnitude() * 10u32 > *ten(y.scale).magnitude() {
        let root = y.mul(&y, work).to(work).add(&Number::new(1)).sqrt(work)?;
        y = y.div(&root.add(&Number::new(1)), work)?;
        factor *= 2;
    }
    let sum = series(&y, &y.mul(&y, work).to(work).neg(), work, |_| 1, |i| 2 * i + 1)?;
    Ok(Number { digits: sum.digits * factor, scale: sum.scale }.to(scale))
}

pub fn sine(x: &Number, scale: usize) -> Outcome<Number> {
    let work = scale + x.digits.magnitude().to_string().len().saturating_sub(x.scale) + 20;
    let turn = atan(&Number::new(1), work)?.mul(&Number::new(8), 0);
    let turns = Number::new(x.div(&turn, 0)?.integer());
    let y = x.to(work.max(x.scale)).add(&turns.mul(&turn, work).neg());
    let mut sum = series(&y, &y.mul(&y, work).to(work).neg(), work, |i| 2 * i * (2 * i + 1), |_| 1)?;
    // The last digits of the series are below those of the result: 0.999… is 1.
    sum.digits += BigInt::from(if sum.digits.sign() == Sign::Minus { -1 } else { 1 }) * ten(sum.scale - scale - 8);
    Ok(sum.to(scale))
}
