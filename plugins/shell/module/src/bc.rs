//! bc, exact to any number of digits: bashkit's own counts in floating point.

use crate::commands::{input, read, reason};
use bashkit::{Command, CommandContext, CommandStatus, Result, async_trait};
use num_bigint::{BigInt, Sign};
use std::collections::HashMap;

pub struct Bc;

#[async_trait]
impl Command for Bc {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        let mut bc = Interpreter::default();
        let mut text = vec![];
        for arg in ctx.args {
            match arg.as_str() {
                "-l" | "--mathlib" => bc.scale = 20,
                a if a.starts_with('-') => {}
                file => match read(&ctx, file).await {
                    Ok(b) => text.extend(b),
                    Err(e) => {
                        ctx.stderr.write_all(format!("File {file} is unavailable: {}\n", reason(&e)).as_bytes()).await?;
                        return Ok(CommandStatus::with_code(1));
                    }
                },
            }
        }
        text.extend(input(&ctx).await?);
        let text = String::from_utf8_lossy(&text).replace("\\\n", "");
        let ended = Parser::new(&text).and_then(|mut p| p.program()).and_then(|program| bc.run(&program));
        ctx.stdout.write_all(bc.out.as_bytes()).await?;
        if let Err(Stop::Error(why)) = ended {
            ctx.stderr.write_all(format!("{why}\n").as_bytes()).await?;
        }
        Ok(CommandStatus::success())
    }
}

/// A decimal number: digits / 10^scale.
#[derive(Clone)]
struct Number {
    digits: BigInt,
    scale: usize,
}

enum Stop {
    Error(String),
    Quit,
    Break,
}

type Outcome<T> = std::result::Result<T, Stop>;

fn wrong<T>(why: &str) -> Outcome<T> {
    Err(Stop::Error(why.into()))
}

fn ten(n: usize) -> BigInt {
    BigInt::from(10).pow(n as u32)
}

impl Number {
    fn new(n: i64) -> Self {
        Number { digits: n.into(), scale: 0 }
    }

    fn to(&self, scale: usize) -> Number {
        let digits = if scale >= self.scale { &self.digits * ten(scale - self.scale) } else { &self.digits / ten(self.scale - scale) };
        Number { digits, scale }
    }

    fn zero(&self) -> bool {
        self.digits.sign() == Sign::NoSign
    }

    fn same(&self, b: &Number) -> (Number, Number) {
        let scale = self.scale.max(b.scale);
        (self.to(scale), b.to(scale))
    }

    fn add(&self, b: &Number) -> Number {
        let (a, b) = self.same(b);
        Number { digits: a.digits + b.digits, scale: a.scale }
    }

    fn neg(&self) -> Number {
        Number { digits: -&self.digits, scale: self.scale }
    }

    fn mul(&self, b: &Number, scale: usize) -> Number {
        let whole = Number { digits: &self.digits * &b.digits, scale: self.scale + b.scale };
        whole.to(whole.scale.min(scale.max(self.scale).max(b.scale)))
    }

    fn div(&self, b: &Number, scale: usize) -> Outcome<Number> {
        if b.zero() {
            return wrong("Runtime error (func=(main), adr=3): Divide by zero");
        }
        Ok(Number { digits: self.to(scale + b.scale).digits / &b.digits, scale })
    }

    fn rem(&self, b: &Number, scale: usize) -> Outcome<Number> {
        let q = self.div(b, scale)?;
        let most = (scale + b.scale).max(self.scale);
        let product = Number { digits: &q.digits * &b.digits, scale: q.scale + b.scale };
        Ok(self.add(&product.neg()).to(most))
    }

    fn pow(&self, n: i64, scale: usize) -> Outcome<Number> {
        if n.unsigned_abs() > 1_000_000 {
            return wrong("Runtime error (func=(main), adr=3): exponent too large in raise");
        }
        let up = Number { digits: self.digits.pow(n.unsigned_abs() as u32), scale: self.scale * n.unsigned_abs() as usize };
        if n < 0 {
            return Number::new(1).div(&up, scale);
        }
        Ok(up.to(up.scale.min(scale.max(self.scale))))
    }

    fn sqrt(&self, scale: usize) -> Outcome<Number> {
        if self.digits.sign() == Sign::Minus {
            return wrong("Runtime error (func=(main), adr=3): Square root of a negative number");
        }
        let scale = scale.max(self.scale);
        Ok(Number { digits: self.to(2 * scale).digits.sqrt(), scale })
    }

    fn integer(&self) -> i64 {
        i64::try_from(&self.to(0).digits).unwrap_or(i64::MAX)
    }

    /// The number in a base, without the zero before the point.
    fn text(&self, base: u32) -> String {
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

enum Expr {
    Number(String),
    Name(String),
    Neg(Box<Expr>),
    Not(Box<Expr>),
    Two(&'static str, Box<Expr>, Box<Expr>),
    Set(String, &'static str, Box<Expr>),
    /// The name, what is added, and whether the value is that from before.
    Step(String, i64, bool),
    Call(String, Box<Expr>),
}

enum Stmt {
    Value(Expr),
    Text(String),
    Print(Vec<std::result::Result<Expr, String>>),
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    While(Option<Expr>, Box<Stmt>),
    Loop(Option<Expr>, Box<Stmt>, Option<Expr>, Option<Expr>),
    Block(Vec<Stmt>),
    Quit,
    Break,
}

#[derive(Clone, PartialEq)]
enum Token {
    Number(String),
    Name(String),
    Text(String),
    Sign(&'static str),
}

const SIGNS: [&str; 37] = [
    "+=", "-=", "*=", "/=", "%=", "^=", "++", "--", "==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "/", "%", "^", "=", "<", ">", "!", "(", ")", "{", "}", ";", ",",
    "\n", "[", "]", "\r", ".", "?", ":",
];

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

/// How deep expressions and statements nest.
const NESTED: usize = 200;

impl Parser {
    fn new(text: &str) -> Outcome<Parser> {
        let mut tokens = vec![];
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let len = |f: fn(char) -> bool| rest.find(|c| !f(c)).unwrap_or(rest.len());
            let used = if c == ' ' || c == '\t' || c == '\r' {
                1
            } else if c == '#' {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |i| i + 2)
            } else if c == '"' {
                let end = rest[1..].find('"').map_or(rest.len(), |i| i + 1);
                tokens.push(Token::Text(rest[1..end].into()));
                (end + 1).min(rest.len())
            } else if c.is_ascii_digit() || ('A'..='F').contains(&c) || c == '.' {
                let n = len(|c| c.is_ascii_digit() || ('A'..='F').contains(&c) || c == '.');
                tokens.push(Token::Number(rest[..n].into()));
                n
            } else if c.is_ascii_lowercase() {
                let n = len(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
                tokens.push(Token::Name(rest[..n].into()));
                n
            } else if let Some(sign) = SIGNS.iter().find(|s| rest.starts_with(**s)) {
                tokens.push(Token::Sign(sign));
                sign.len()
            } else {
                return wrong(&format!("(standard_in) 1: illegal character: {c}"));
            };
            rest = &rest[used..];
        }
        Ok(Parser { tokens, at: 0, depth: 0 })
    }

    fn next_is(&self, sign: &str) -> bool {
        matches!(self.tokens.get(self.at), Some(Token::Sign(s)) if *s == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let is = self.next_is(sign);
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, sign: &str) -> Outcome<()> {
        if self.take(sign) { Ok(()) } else { wrong("(standard_in) 1: syntax error") }
    }

    fn lines(&mut self) {
        while self.take("\n") {}
    }

    fn program(&mut self) -> Outcome<Vec<Stmt>> {
        let mut list = vec![];
        loop {
            while self.take("\n") || self.take(";") {}
            if self.at == self.tokens.len() {
                return Ok(list);
            }
            list.push(self.statement()?);
            if self.at < self.tokens.len() && !self.next_is("\n") && !self.next_is(";") {
                return wrong("(standard_in) 1: syntax error");
            }
        }
    }

    fn deeper(&mut self) -> Outcome<()> {
        self.depth += 1;
        if self.depth > NESTED { wrong("bc: nested too deeply") } else { Ok(()) }
    }

    fn statement(&mut self) -> Outcome<Stmt> {
        self.deeper()?;
        let s = self.one()?;
        self.depth -= 1;
        Ok(s)
    }

    fn one(&mut self) -> Outcome<Stmt> {
        if self.take("{") {
            let mut list = vec![];
            loop {
                while self.take("\n") || self.take(";") {}
                if self.take("}") {
                    return Ok(Stmt::Block(list));
                }
                list.push(self.statement()?);
            }
        }
        match self.tokens.get(self.at).cloned() {
            Some(Token::Text(text)) => {
                self.at += 1;
                Ok(Stmt::Text(text))
            }
            Some(Token::Name(name)) if matches!(name.as_str(), "quit" | "halt" | "break" | "if" | "while" | "for" | "print" | "define" | "return" | "auto") => {
                self.at += 1;
                match name.as_str() {
                    "quit" | "halt" => Ok(Stmt::Quit),
                    "break" => Ok(Stmt::Break),
                    "print" => {
                        let mut list = vec![];
                        loop {
                            if let Some(Token::Text(text)) = self.tokens.get(self.at) {
                                list.push(Err(text.clone()));
                                self.at += 1;
                            } else {
                                list.push(Ok(self.expr()?));
                            }
                            if !self.take(",") {
                                return Ok(Stmt::Print(list));
                            }
                        }
                    }
                    "if" => {
                        self.expect("(")?;
                        let c = self.expr()?;
                        self.expect(")")?;
                        self.lines();
                        let then = Box::new(self.statement()?);
                        let before = self.at;
                        while self.take("\n") || self.take(";") {}
                        if self.tokens.get(self.at) == Some(&Token::Name("else".into())) {
                            self.at += 1;
                            self.lines();
                            return Ok(Stmt::If(c, then, Some(Box::new(self.statement()?))));
                        }
                        self.at = before;
                        Ok(Stmt::If(c, then, None))
                    }
                    "while" => {
                        self.expect("(")?;
                        let c = self.expr()?;
                        self.expect(")")?;
                        self.lines();
                        Ok(Stmt::While(Some(c), Box::new(self.statement()?)))
                    }
                    "for" => {
                        self.expect("(")?;
                        let mut parts = vec![];
                        for end in [";", ";", ")"] {
                            parts.push(if self.next_is(end) { None } else { Some(self.expr()?) });
                            self.expect(end)?;
                        }
                        self.lines();
                        let step = parts.pop().flatten();
                        let c = parts.pop().flatten();
                        Ok(Stmt::Loop(parts.pop().flatten(), Box::new(self.statement()?), c, step))
                    }
                    _ => wrong(&format!("bc: {name} is not supported")),
                }
            }
            _ => Ok(Stmt::Value(self.expr()?)),
        }
    }

    fn expr(&mut self) -> Outcome<Expr> {
        self.deeper()?;
        let e = self.level(0)?;
        self.depth -= 1;
        Ok(e)
    }

    fn level(&mut self, level: usize) -> Outcome<Expr> {
        const LEVELS: [&[&str]; 5] = [&["||"], &["&&"], &["==", "!=", "<=", ">=", "<", ">"], &["+", "-"], &["*", "/", "%"]];
        let Some(signs) = LEVELS.get(level) else { return self.power() };
        let mut left = self.level(level + 1)?;
        while let Some(sign) = signs.iter().find(|s| self.next_is(s)) {
            self.at += 1;
            left = Expr::Two(sign, Box::new(left), Box::new(self.level(level + 1)?));
        }
        Ok(left)
    }

    fn power(&mut self) -> Outcome<Expr> {
        if self.take("-") {
            self.deeper()?;
            let e = Expr::Neg(Box::new(self.power()?));
            self.depth -= 1;
            return Ok(e);
        }
        if self.take("!") {
            self.deeper()?;
            let e = Expr::Not(Box::new(self.power()?));
            self.depth -= 1;
            return Ok(e);
        }
        let base = self.primary()?;
        if self.take("^") {
            self.deeper()?;
            let e = Expr::Two("^", Box::new(base), Box::new(self.power()?));
            self.depth -= 1;
            return Ok(e);
        }
        Ok(base)
    }

    fn primary(&mut self) -> Outcome<Expr> {
        if self.take("(") {
            let e = self.expr()?;
            self.expect(")")?;
            return Ok(e);
        }
        for (sign, n) in [("++", 1), ("--", -1)] {
            if self.take(sign) {
                let Some(Token::Name(name)) = self.tokens.get(self.at).cloned() else { return wrong("(standard_in) 1: syntax error") };
                self.at += 1;
                return Ok(Expr::Step(name, n, false));
            }
        }
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        match token {
            Some(Token::Number(n)) => Ok(Expr::Number(n)),
            Some(Token::Name(name)) => {
                if self.take("(") {
                    let e = self.expr()?;
                    self.expect(")")?;
                    return Ok(Expr::Call(name, Box::new(e)));
                }
                for (sign, n) in [("++", 1), ("--", -1)] {
                    if self.take(sign) {
                        return Ok(Expr::Step(name, n, true));
                    }
                }
                for (sign, op) in [("=", "="), ("+=", "+"), ("-=", "-"), ("*=", "*"), ("/=", "/"), ("%=", "%"), ("^=", "^")] {
                    if self.take(sign) {
                        return Ok(Expr::Set(name, op, Box::new(self.expr()?)));
                    }
                }
                Ok(Expr::Name(name))
            }
            _ => wrong("(standard_in) 1: syntax error"),
        }
    }
}

#[derive(Default)]
struct Interpreter {
    names: HashMap<String, Number>,
    scale: usize,
    ibase: Option<u32>,
    obase: Option<u32>,
    out: String,
}

impl Interpreter {
    fn run(&mut self, list: &[Stmt]) -> Outcome<()> {
        list.iter().try_for_each(|s| self.statement(s))
    }

    fn statement(&mut self, s: &Stmt) -> Outcome<()> {
        match s {
            Stmt::Text(text) => self.out.push_str(text),
            Stmt::Quit => return Err(Stop::Quit),
            Stmt::Break => return Err(Stop::Break),
            Stmt::Block(list) => self.run(list)?,
            Stmt::Value(e) => {
                let n = self.value(e)?;
                if !matches!(e, Expr::Set(..)) {
                    let line = n.text(self.obase.unwrap_or(10));
                    // Lines have 68 characters and a backslash.
                    for (i, c) in line.chars().enumerate() {
                        if i > 0 && i % 68 == 0 && line.len() > 69 {
                            self.out.push_str("\\\n");
                        }
                        self.out.push(c);
                    }
                    self.out.push('\n');
                    self.names.insert("last".into(), n);
                }
            }
            Stmt::Print(list) => {
                for part in list {
                    match part {
                        Ok(e) => {
                            let text = self.value(e)?.text(self.obase.unwrap_or(10));
                            self.out.push_str(&text);
                        }
                        Err(text) => self.out.push_str(&text.replace("\\n", "\n").replace("\\t", "\t")),
                    }
                }
            }
            Stmt::If(c, then, other) => {
                if !self.value(c)?.zero() {
                    self.statement(then)?;
                } else if let Some(other) = other {
                    self.statement(other)?;
                }
            }
            Stmt::While(c, body) => self.repeat(c.as_ref(), body, None)?,
            Stmt::Loop(start, body, c, step) => {
                if let Some(e) = start {
                    self.value(e)?;
                }
                self.repeat(c.as_ref(), body, step.as_ref())?;
            }
        }
        Ok(())
    }

    fn repeat(&mut self, c: Option<&Expr>, body: &Stmt, step: Option<&Expr>) -> Outcome<()> {
        while c.map_or(Ok(true), |c| self.value(c).map(|n| !n.zero()))? {
            match self.statement(body) {
                Err(Stop::Break) => break,
                other => other?,
            }
            if let Some(e) = step {
                self.value(e)?;
            }
        }
        Ok(())
    }

    fn literal(&self, text: &str) -> Outcome<Number> {
        let base = self.ibase.unwrap_or(10);
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        if part.contains('.') {
            return wrong("(standard_in) 1: syntax error");
        }
        let single = whole.len() + part.len() == 1;
        let digits = |t: &str| {
            t.chars().fold(BigInt::from(0), |n, c| {
                let d = c.to_digit(16).unwrap_or(0);
                n * base + if single { d } else { d.min(base - 1) }
            })
        };
        let whole = Number { digits: digits(whole), scale: 0 };
        if part.is_empty() {
            return Ok(whole);
        }
        let over = Number { digits: BigInt::from(base).pow(part.len() as u32), scale: 0 };
        Ok(whole.add(&Number { digits: digits(part), scale: 0 }.div(&over, part.len())?))
    }

    fn get(&self, name: &str) -> Number {
        match name {
            "scale" => Number::new(self.scale as i64),
            "ibase" => Number::new(self.ibase.unwrap_or(10).into()),
            "obase" => Number::new(self.obase.unwrap_or(10).into()),
            _ => self.names.get(name).cloned().unwrap_or_else(|| Number::new(0)),
        }
    }

    fn set(&mut self, name: &str, n: Number) {
        match name {
            "scale" => self.scale = n.integer().clamp(0, 100_000) as usize,
            "ibase" => self.ibase = Some(n.integer().clamp(2, 16) as u32),
            "obase" => self.obase = Some(n.integer().clamp(2, 36) as u32),
            _ => drop(self.names.insert(name.into(), n)),
        }
    }

    fn value(&mut self, e: &Expr) -> Outcome<Number> {
        Ok(match e {
            Expr::Number(text) => self.literal(text)?,
            Expr::Name(name) => self.get(name),
            Expr::Neg(e) => self.value(e)?.neg(),
            Expr::Not(e) => Number::new(self.value(e)?.zero().into()),
            Expr::Two(op, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                self.two(op, &a, &b)?
            }
            Expr::Set(name, op, e) => {
                let mut n = self.value(e)?;
                if *op != "=" {
                    n = self.two(op, &self.get(name), &n)?;
                }
                self.set(name, n.clone());
                n
            }
            Expr::Step(name, by, before) => {
                let was = self.get(name);
                let n = was.add(&Number::new(*by));
                self.set(name, n.clone());
                if *before { was } else { n }
            }
            Expr::Call(name, e) => {
                let n = self.value(e)?;
                match name.as_str() {
                    "sqrt" => n.sqrt(self.scale)?,
                    "length" => Number::new(n.digits.magnitude().to_string().len() as i64),
                    "scale" => Number::new(n.scale as i64),
                    "e" => exp(&n, self.scale)?,
                    "l" => log(&n, self.scale)?,
                    "a" => atan(&n, self.scale)?,
                    "s" => sine(&n, self.scale)?,
                    "c" => {
                        let quarter = atan(&Number::new(1), self.scale + 8)?.mul(&Number::new(2), 0);
                        sine(&n.add(&quarter), self.scale)?
                    }
                    _ => return wrong(&format!("Runtime error (func=(main), adr=3): Function {name} not defined.")),
                }
            }
        })
    }

    fn two(&self, op: &str, a: &Number, b: &Number) -> Outcome<Number> {
        let (x, y) = a.same(b);
        Ok(match op {
            "+" => a.add(b),
            "-" => a.add(&b.neg()),
            "*" => a.mul(b, self.scale),
            "/" => a.div(b, self.scale)?,
            "%" => a.rem(b, self.scale)?,
            "^" => a.pow(b.integer(), self.scale)?,
            "==" => Number::new((x.digits == y.digits).into()),
            "!=" => Number::new((x.digits != y.digits).into()),
            "<" => Number::new((x.digits < y.digits).into()),
            ">" => Number::new((x.digits > y.digits).into()),
            "<=" => Number::new((x.digits <= y.digits).into()),
            ">=" => Number::new((x.digits >= y.digits).into()),
            "&&" => Number::new((!a.zero() && !b.zero()).into()),
            _ => Number::new((!a.zero() || !b.zero()).into()),
        })
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

fn exp(x: &Number, scale: usize) -> Outcome<Number> {
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

fn log(x: &Number, scale: usize) -> Outcome<Number> {
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

fn atan(x: &Number, scale: usize) -> Outcome<Number> {
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

fn sine(x: &Number, scale: usize) -> Outcome<Number> {
    let work = scale + x.digits.magnitude().to_string().len().saturating_sub(x.scale) + 20;
    let turn = atan(&Number::new(1), work)?.mul(&Number::new(8), 0);
    let turns = Number::new(x.div(&turn, 0)?.integer());
    let y = x.to(work.max(x.scale)).add(&turns.mul(&turn, work).neg());
    let mut sum = series(&y, &y.mul(&y, work).to(work).neg(), work, |i| 2 * i * (2 * i + 1), |_| 1)?;
    // The last digits of the series are below those of the result: 0.999… is 1.
    sum.digits += BigInt::from(if sum.digits.sign() == Sign::Minus { -1 } else { 1 }) * ten(sum.scale - scale - 8);
    Ok(sum.to(scale))
}
