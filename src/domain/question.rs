//! stub
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks { Question, Decision }
pub fn asked(text: &str) -> Option<Asks> {
    if text.contains("decide") { return Some(Asks::Decision) }
    text.contains('?').then_some(Asks::Question)
}
