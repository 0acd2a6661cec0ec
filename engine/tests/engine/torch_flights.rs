//! The facts that a pass of a libtorch model reports about its rows without transferring them.

use crate::devices::on_every_device;
use crate::torch::{Expected, Kind, WIDTH, folder, kinds, model};
use lexiform_engine::{Ask, Device, Feed, Flight, Landed, Logits};
use lexiform_law::{Allowed, History, Law, Place, Seeded, Warper, Warping};

const TABLE: [u32; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
const LEFT_OUT: [usize; 3] = [5, 40, WIDTH - 1];

/// 600 draws at several temperatures, with and without a mask.
fn asks<'a>(warpers: &'a [Warper; 3], mask: &'a [u32]) -> Vec<Ask<'a>> {
    let ask = |number: usize| Ask {
        row: number * 7 % 40,
        allowed: match number % 2 {
            0 => Allowed::All,
            _ => Allowed::Words(mask),
        },
        warper: &warpers[number % 3],
        history: History::default(),
        seeded: Seeded::new(number as u64, 3),
        place: Place::new(0, number as u32),
    };
    (0..600).map(ask).collect()
}

fn warpers() -> [Warper; 3] {
    [1.0, 0.6, 0.0].map(|temperature| {
        let warping = Warping {
            temperature,
            ..Warping::default()
        };
        Warper::new(warping, Law::Local).unwrap()
    })
}

/// The rows in memory, without the columns that are left out.
fn landed(rows: &Logits) -> Landed {
    let mut values: Vec<f32> = (0..rows.len()).flat_map(|row| rows.row(row).to_vec()).collect();
    for row in values.chunks_mut(WIDTH) {
        LEFT_OUT
            .iter()
            .for_each(|&column| row[column] = f32::NEG_INFINITY);
    }
    Landed::new(Logits::new(values, WIDTH))
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

fn draws_and_tops_are_those_of_the_rows(device: Device) {
    let (warpers, mask) = (warpers(), [0x0FF0_F00F, 0xFFFF_0000, 0x7]);
    for kind in kinds(device).filter(|kind| !kind.fused) {
        let expected = Expected::read(kind.family);
        let mut model = model(kind, 10, 4);
        model.leave_out(&LEFT_OUT);
        let feed = feed(&expected);
        let mut flight = model.submit(&[feed]).unwrap();
        assert!(flight.draws(), "{kind:?}");
        let asks = asks(&warpers, &mask);
        let drawn = flight.draw(&asks).unwrap();
        let top = flight.top(&[3, 39, 3], 5).unwrap();
        let brought = flight.rows(&[2, 39]).unwrap();
        let all = flight.rows(&(0..40).collect::<Vec<_>>()).unwrap();
        let mut landed = landed(&all);
        let same = [(0, 2), (1, 39)].map(|(one, other)| (brought.row(one), all.row(other)));
        assert!(same.iter().all(|(one, other)| one == other), "{kind:?}");
        for (found, known) in top.iter().zip(landed.top(&[3, 39, 3], 5).unwrap()) {
            let same = |(one, other): (&(u32, f64), &(u32, f64))| one.0 == other.0 && near(one.1, other.1);
            assert!(
                found.len() == 5 && found.iter().zip(&known).all(same),
                "{kind:?}: {found:?} {known:?}"
            );
        }
        for (found, known) in drawn.into_iter().zip(landed.draw(&asks).unwrap()) {
            let (found, known) = (found.unwrap(), known.unwrap());
            assert_eq!(found.token, known.token, "{kind:?}");
            let numbers = [
                (found.log_mass, known.log_mass),
                (found.log_kept, known.log_kept),
                (found.log_probability, known.log_probability),
            ];
            assert!(
                numbers.iter().all(|&(one, other)| near(one, other)),
                "{kind:?}: {numbers:?}"
            );
        }
        assert!(
            flight.rows(&[40]).is_err() && flight.top(&[40], 1).is_err(),
            "there are 40 rows"
        );
    }
}

fn feed(expected: &Expected) -> Feed<'_> {
    Feed {
        tokens: &expected.tokens,
        start: 0,
        table: &TABLE,
        rows: 40,
        parents: None,
        scale: 1.0,
    }
}

/// The output layer makes the rows from what is called hidden.
fn rows_are_made_from_hidden_states(device: Device) {
    for kind in [Kind::usual("llama2", device), Kind::usual("mistral", device)] {
        let weights = tch::Tensor::read_safetensors(folder(kind.family).join("model.safetensors")).unwrap();
        let (_, head) = weights
            .into_iter()
            .find(|(name, _)| name == "lm_head.weight")
            .unwrap();
        let expected = Expected::read(kind.family);
        let mut model = model(kind, 10, 4);
        let mut flight = model.submit(&[feed(&expected)]).unwrap();
        let hidden = flight.hidden(&[39, 2]).unwrap().unwrap();
        let hidden = tch::Tensor::from_slice(&hidden).view([2, -1]);
        let made = Vec::<f32>::try_from(&hidden.linear(&head, None::<&tch::Tensor>).view([-1])).unwrap();
        let rows = flight.rows(&[39, 2]).unwrap();
        let off = made.chunks(WIDTH).enumerate().flat_map(|(number, made)| {
            let row = rows.row(number).to_vec();
            made.iter()
                .zip(row)
                .map(|(one, other)| (one - other).abs())
                .collect::<Vec<_>>()
        });
        let off = off.fold(0.0, f32::max);
        assert!(off < 1e-4, "{kind:?}: {off}");
    }
}

mod on {
    use super::*;

    on_every_device!(
        draws_and_tops_are_those_of_the_rows,
        rows_are_made_from_hidden_states
    );
}
