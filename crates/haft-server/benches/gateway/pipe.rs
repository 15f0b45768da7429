//! A client straight at the server's pipes: what there is without a gateway.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use super::Failure;
use super::load::IN_FLIGHT;
use super::messages::{self, Era, Names};

const BUFFER_BYTES: usize = 256 * 1024;

pub(crate) struct Pipe {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next: u64,
    names: Names,
    line: Vec<u8>,
}

impl Pipe {
    /// The command of the server itself.
    pub(crate) fn command() -> Result<Command, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--role", "backend"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Ok(command)
    }

    pub(crate) fn open(child: &mut Child) -> Result<Self, Failure> {
        let stdin = child.stdin.take().ok_or("no stdin")?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let stdout = BufReader::with_capacity(BUFFER_BYTES, stdout);
        let mut pipe = Self { stdin, stdout, next: 1, names: Names::default(), line: Vec::new() };
        pipe.exchange(messages::initialize)?;
        pipe.send(messages::INITIALIZED)?;
        let (_, list) = pipe.exchange(|id| messages::list(id, Era::Legacy))?;
        pipe.names = Names::find(list)?;
        Ok(pipe)
    }

    pub(crate) fn echo(&mut self) -> Result<(), Failure> {
        let tool = self.names.echo.clone();
        let (id, result) = self.exchange(|id| messages::echo(id, &tool, Era::Legacy))?;
        messages::check_echo(id, result)
    }

    pub(crate) fn blob(&mut self) -> Result<(), Failure> {
        let tool = self.names.blob.clone();
        let (_, result) = self.exchange(|id| messages::blob(id, &tool, Era::Legacy))?;
        messages::check_blob(result)
    }

    /// Keeps calls in flight until the end and counts the answers.
    pub(crate) fn flood(&mut self, until: Instant) -> Result<f64, Failure> {
        for _ in 0..IN_FLIGHT {
            self.send_echo()?;
        }
        let mut answers = 0.0;
        while Instant::now() < until {
            let (id, result) = self.receive()?;
            messages::check_echo(id, result)?;
            answers += 1.0;
            self.send_echo()?;
        }
        for _ in 0..IN_FLIGHT {
            self.receive()?;
        }
        Ok(answers)
    }

    fn send_echo(&mut self) -> Result<(), Failure> {
        let message = messages::echo(self.next, &self.names.echo, Era::Legacy);
        self.next += 1;
        self.send(&message)
    }

    fn exchange(&mut self, message: impl FnOnce(u64) -> String) -> Result<(u64, &str), Failure> {
        let message = message(self.next);
        self.next += 1;
        self.send(&message)?;
        self.receive()
    }

    fn send(&mut self, message: &str) -> Result<(), Failure> {
        Ok(self.stdin.write_all(format!("{message}\n").as_bytes())?)
    }

    fn receive(&mut self) -> Result<(u64, &str), Failure> {
        self.line.clear();
        if self.stdout.read_until(b'\n', &mut self.line)? == 0 {
            return Err("the server has ended".into());
        }
        messages::result(&self.line)
    }
}
