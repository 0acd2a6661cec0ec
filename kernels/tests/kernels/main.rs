//! The kernels of `kernels/sources`, compiled for and run on this processor. No card is needed.
//!
//! ```text
//!   simt.h + host.cpp + a source ─ c++ ─► processor ─┬─ cases: every kernel against loops in f64
//!                                                    ├─ mutants: sources that are broken on purpose, which cases must notice
//!                                                    ├─ draws: the library's law, bit for bit
//!                                                    └─ moves: stretches of the cache
//! ```
//!
//! Whole passes are compared with the decoder of torch by `engine/tests/kernels`.

#[path = "cases.rs"]
mod cases;
mod compiler;
mod draws;
mod eight_bits;
mod logits;
mod memory;
mod moves;
mod mutants;
mod processor;

use cases::Case;
use processor::Processor;

/// What is wrong with a case on this processor.
fn faults(case: &Case, processor: &Processor) -> Vec<String> {
    let mut buffers = case.buffers.clone();
    for _ in 0..case.rounds {
        if let Err(fault) = processor.run(&case.nodes, &mut buffers) {
            return vec![format!("{}: {fault}", case.name)];
        }
        let faults = case.faults(&buffers);
        if !faults.is_empty() {
            return faults;
        }
    }
    faults_behind(case, processor)
}

/// What is wrong with it when each launch begins before the end of the one ahead.
fn faults_behind(case: &Case, processor: &Processor) -> Vec<String> {
    let mut buffers = case.buffers.clone();
    let run = processor.run_behind(&case.nodes, &mut buffers, &case.constant());
    let faults = run.map(|()| case.faults(&buffers));
    let faults = faults.unwrap_or_else(|fault| vec![format!("{}: {fault}", case.name)]);
    let told = faults.into_iter().map(|fault| format!("behind another, {fault}"));
    told.collect()
}

fn check(source: &'static str) {
    if !processor::is_there(source) {
        return;
    }
    let cases = cases::of(source);
    assert!(!cases.is_empty());
    let processor = Processor::of(source);
    let faults: Vec<String> = cases.iter().flat_map(|case| faults(case, &processor)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn attention_is_that_of_loops() {
    check("attend.cu");
}

#[test]
fn products_for_one_and_two_vectors_are_those_of_loops() {
    check("gemv.cu");
    check("gemv_int8.cu");
    check("gemv_fp8.cu");
}

#[test]
fn products_for_up_to_sixteen_vectors_are_those_of_loops() {
    check("skinny.cu");
    check("skinny_int8.cu");
    check("skinny_fp8.cu");
}

#[test]
fn mixtures_of_experts_are_those_of_loops() {
    check("experts.cu");
}

/// Whichever place a token has among those of an expert, and however many there are.
#[test]
fn a_token_has_the_same_bits_of_its_experts_in_any_company() {
    if !processor::is_there("a_token_has_the_same_bits_of_its_experts_in_any_company") {
        return;
    }
    let processor = Processor::of("experts.cu");
    let (company, alone) = cases::in_company_and_alone();
    let [company, alone] = [company, alone].map(|case| {
        let mut buffers = case.buffers.clone();
        processor.run(&case.nodes, &mut buffers).unwrap();
        buffers[case.expected[0].buffer].bytes()
    });
    assert_eq!(company[company.len() - alone.len()..], alone);
}

#[test]
fn what_lies_between_products_is_that_of_loops() {
    check("small.cu");
}
