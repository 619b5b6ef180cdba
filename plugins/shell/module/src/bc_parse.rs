//! The syntax of bc.

use crate::bc_number::{Outcome, wrong};

pub enum Expr {
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

pub enum Stmt {
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

pub struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

/// How deep expressions and statements nest.
const NESTED: usize = 200;

impl Parser {
    pub fn new(text: &str) -> Outcome<Parser> {
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

    pub fn program(&mut self) -> Outcome<Vec<Stmt>> {
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
