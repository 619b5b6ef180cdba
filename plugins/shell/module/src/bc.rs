//! bc, exact to any number of digits: bashkit's own counts in floating point.

use crate::bc_number::{Number, Outcome, Stop, atan, exp, log, sine, wrong};
use crate::bc_parse::{Expr, Parser, Stmt};
use crate::commands::{input, read, reason};
use bashkit::{Command, CommandContext, CommandStatus, Result, async_trait};
use num_bigint::BigInt;
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
