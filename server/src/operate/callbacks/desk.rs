//! Questions of the sequences of one request to one host: while the host answers some, others gather, and go
//! together.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use lexiform_law::monitor::{Failure, Question};

/// The most texts that go together.
const MOST_TEXTS: usize = 256;

/// Asks a host about texts.
type Ask<A> = Box<dyn Fn(&[Question]) -> Result<Vec<A>, Failure> + Send + Sync>;

/// A desk at which the sequences of a request queue for a host.
pub struct Desk<A> {
    ask: Ask<A>,
    queue: Mutex<Queue<A>>,
    /// Signalled when a host has answered.
    answered: Condvar,
}

/// The answer to an order, once it is there.
type Answer<A> = Mutex<Option<Result<Vec<A>, Failure>>>;

/// An order that waits, and the place for its answer.
struct Order<A> {
    texts: Vec<Question>,
    answer: Arc<Answer<A>>,
}

struct Queue<A> {
    orders: Vec<Order<A>>,
    is_asking: bool,
}

impl<A: Clone> Desk<A> {
    /// Creates the desk of a host, which is asked by this function: for each text an answer.
    pub fn new(ask: impl Fn(&[Question]) -> Result<Vec<A>, Failure> + Send + Sync + 'static) -> Self {
        Desk {
            ask: Box::new(ask),
            queue: Mutex::new(Queue {
                orders: Vec::new(),
                is_asking: false,
            }),
            answered: Condvar::new(),
        }
    }

    /// Returns the answers about texts, in their order; waits until the host has given them.
    ///
    /// # Errors
    /// Fails if the host has no answer.
    pub fn answers(&self, texts: &[Question]) -> Result<Vec<A>, Failure> {
        let answer = Arc::new(Mutex::new(None));
        let mut queue = lock(&self.queue);
        queue.orders.push(Order {
            texts: texts.to_vec(),
            answer: answer.clone(),
        });
        loop {
            if let Some(answer) = lock(&answer).take() {
                return answer;
            }
            if queue.is_asking {
                queue = self.answered.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue.is_asking = true;
            let together = queue.take();
            drop(queue);
            self.serve(&together);
            queue = lock(&self.queue);
            queue.is_asking = false;
            self.answered.notify_all();
        }
    }

    /// Asks about all texts of these orders, each text once.
    fn serve(&self, orders: &[Order<A>]) {
        let mut texts: Vec<Question> = Vec::new();
        let mut places: HashMap<&Question, usize> = HashMap::new();
        for text in orders.iter().flat_map(|order| &order.texts) {
            places.entry(text).or_insert_with(|| {
                texts.push(text.clone());
                texts.len() - 1
            });
        }
        // Others wait for this thread.
        let answers = catch_unwind(AssertUnwindSafe(|| (self.ask)(&texts)));
        let answers = answers.unwrap_or_else(|_| Err(Failure("panicked".to_owned())));
        for order in orders {
            let of = |answers: &Vec<A>| {
                order
                    .texts
                    .iter()
                    .map(|text| answers[places[text]].clone())
                    .collect()
            };
            let answer = answers.as_ref().map(of).map_err(Failure::clone);
            *lock(&order.answer) = Some(answer);
        }
    }
}

impl<A> Queue<A> {
    /// Takes the orders that go together: the first, and those after it that have room.
    fn take(&mut self) -> Vec<Order<A>> {
        let mut count = 0;
        let mut fits = |order: &Order<A>| {
            let is_first = count == 0;
            count += order.texts.len();
            is_first || count <= MOST_TEXTS
        };
        let together = self
            .orders
            .iter()
            .map_while(|order| fits(order).then_some(()))
            .count();
        self.orders.drain(..together).collect()
    }
}

/// Locks what no panic can leave half written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn question(text: &str) -> Question {
        Question {
            text: text.to_owned(),
            is_whole: false,
        }
    }

    /// The first question goes alone, and those that come meanwhile go together, each text once.
    #[test]
    fn questions_gather_while_a_host_answers() {
        let ((begun, begins), (end, ends)) = (channel(), channel());
        let (ends, asked) = (Mutex::new(ends), Arc::new(Mutex::new(Vec::new())));
        let noted = asked.clone();
        let desk = Arc::new(Desk::new(move |texts: &[Question]| {
            lock(&noted).push(texts.len());
            begun.send(()).expect("the test listens");
            lock(&ends).recv().expect("the test says when");
            Ok(texts.iter().map(|text| text.text.len()).collect())
        }));
        let ask = |texts: &[&str]| {
            let (desk, texts): (_, Vec<Question>) =
                (desk.clone(), texts.iter().map(|text| question(text)).collect());
            std::thread::spawn(move || desk.answers(&texts))
        };
        let first = ask(&["a"]);
        begins.recv().expect("it begins");
        let others = [ask(&["bb", "ccc"]), ask(&["ccc"]), ask(&["dddd"])];
        while lock(&desk.queue).orders.len() < 3 {
            std::thread::yield_now();
        }
        end.send(()).expect("it waits");
        end.send(()).expect("it waits");
        assert_eq!(first.join().expect("no panic"), Ok(vec![1]));
        let others = others.map(|other| other.join().expect("no panic").expect("an answer"));
        assert_eq!(others, [vec![2, 3], vec![3], vec![4]]);
        assert_eq!(*lock(&asked), [1, 3]);
    }

    #[test]
    fn a_host_that_panics_fails_all_that_wait_for_it() {
        let desk = Desk::<u8>::new(|texts| match texts.len() {
            1 => panic!("the test says so"),
            _ => Err(Failure("gone".to_owned())),
        });
        assert_eq!(
            desk.answers(&[question("a")]),
            Err(Failure("panicked".to_owned()))
        );
        let two = [question("a"), question("b")];
        assert_eq!(desk.answers(&two), Err(Failure("gone".to_owned())));
    }
}
