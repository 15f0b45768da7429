//! Independent client programs against the real `haft`.
//!
//! A program does everything once and prints one report. What has to be in it is the same for all of
//! them: see [`report`].

mod inspector;
mod many;
mod python1;
mod python2;
mod replicas;
mod report;
mod rust;
mod toolbox;
mod typescript;
mod visit;
