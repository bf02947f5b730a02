//! Reservations of files: who keeps which patterns until when.

use rusqlite::{OptionalExtension as _, Row, params};

use super::Tx;
use crate::{
    domain::{
        id::{MemberId, ReservationId},
        time::Time,
    },
    error::Result,
};

/// A reservation that has not ended.
#[derive(Debug, Clone)]
pub struct Reservation {
    pub id: ReservationId,
    pub holder: MemberId,
    pub pattern: String,
    /// The checkout in which it was made; it holds in all of them.
    pub checkout: String,
    pub reason: String,
    pub made_at: Time,
    pub ends_at: Time,
}

/// A reservation to be.
#[derive(Debug)]
pub struct NewReservation<'a> {
    pub holder: MemberId,
    pub pattern: &'a str,
    pub checkout: &'a str,
    pub reason: &'a str,
    pub ends_at: Time,
}

impl Reservation {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Reservation> {
        Ok(Reservation {
            id: ReservationId(row.get("id")?),
            holder: MemberId(row.get("member_id")?),
            pattern: row.get("pattern")?,
            checkout: row.get("checkout")?,
            reason: row.get("reason")?,
            made_at: Time(row.get("made_at")?),
            ends_at: Time(row.get("ends_at")?),
        })
    }
}

/// `+id`: for the order of `id` as it is, every reservation would be looked at that there ever was.
const LIVE: &str = "SELECT * FROM reservation WHERE ended_at IS NULL AND ends_at > ?1 ORDER BY +id";

const RUN_OUT: &str =
    "SELECT * FROM reservation WHERE ended_at IS NULL AND ends_at <= ?1 ORDER BY +id";

const HOLDERS: &str = "SELECT DISTINCT member_id FROM reservation WHERE ended_at IS NULL";

const HAS_RUN_OUT: &str =
    "SELECT EXISTS (SELECT 1 FROM reservation WHERE ended_at IS NULL AND ends_at <= ?1)";

const HAS_RUN_OUT_FOR: &str = "SELECT EXISTS (SELECT 1 FROM reservation
     WHERE member_id = +?1 AND rtrim(pattern, '/') = rtrim(?2, '/') AND ended_at IS NULL
       AND ends_at <= ?3)";

impl Tx<'_> {
    /// All reservations that hold now, in the order in which they were made.
    pub fn reservations(&self, now: Time) -> Result<Vec<Reservation>> {
        let mut statement = self.conn.prepare_cached(LIVE)?;
        let rows = statement.query_map([now.0], Reservation::from_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Who holds something.
    pub fn reservation_holders(&self) -> Result<Vec<MemberId>> {
        let mut statement = self.conn.prepare_cached(HOLDERS)?;
        let rows = statement.query_map([], |row| Ok(MemberId(row.get(0)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Whether a reservation has run out, and nobody has noted it yet.
    pub fn has_run_out(&self, now: Time) -> Result<bool> {
        let mut statement = self.conn.prepare_cached(HAS_RUN_OUT)?;
        Ok(statement.query_row([now.0], |row| row.get(0))?)
    }

    /// Whether this pattern of the member has run out, and nobody has noted it yet.
    pub fn has_run_out_for(&self, holder: MemberId, pattern: &str, now: Time) -> Result<bool> {
        let mut statement = self.conn.prepare_cached(HAS_RUN_OUT_FOR)?;
        Ok(statement.query_row(params![holder.0, pattern, now.0], |row| row.get(0))?)
    }

    /// The reservations that have run out, in the order in which they were made.
    pub fn run_out(&self, now: Time) -> Result<Vec<Reservation>> {
        let mut statement = self.conn.prepare_cached(RUN_OUT)?;
        let rows = statement.query_map([now.0], Reservation::from_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub fn insert_reservation(&self, new: &NewReservation<'_>, now: Time) -> Result<()> {
        self.writing()?
            .prepare_cached(
                "INSERT INTO reservation (member_id, pattern, checkout, reason, made_at, ends_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                new.holder.0,
                new.pattern,
                new.checkout,
                new.reason,
                now.0,
                new.ends_at.0
            ])?;
        Ok(())
    }

    /// It is what it would be if it were made now, but for its beginning.
    pub fn renew_reservation(&self, id: ReservationId, new: &NewReservation<'_>) -> Result<()> {
        self.writing()?
            .prepare_cached(
                "UPDATE reservation SET pattern = ?2, checkout = ?3, reason = ?4, ends_at = ?5
                 WHERE id = ?1",
            )?
            .execute(params![id.0, new.pattern, new.checkout, new.reason, new.ends_at.0])?;
        Ok(())
    }

    pub fn end_reservation(&self, id: ReservationId, now: Time) -> Result<()> {
        self.writing()?
            .prepare_cached("UPDATE reservation SET ended_at = ?2 WHERE id = ?1")?
            .execute([id.0, now.0])?;
        Ok(())
    }

    /// When the member's last reservation of this pattern ended.
    pub fn reservation_ended(&self, holder: MemberId, pattern: &str) -> Result<Option<Time>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT ended_at FROM reservation
             WHERE member_id = +?1 AND rtrim(pattern, '/') = rtrim(?2, '/')
               AND ended_at IS NOT NULL
             ORDER BY id DESC LIMIT 1",
        )?;
        Ok(statement.query_row(params![holder.0, pattern], |row| row.get(0)).optional()?.map(Time))
    }
}

#[cfg(test)]
mod tests {
    use super::{HAS_RUN_OUT, HAS_RUN_OUT_FOR, HOLDERS, LIVE, RUN_OUT};
    use crate::store::plan_of;

    /// Those that have ended are many, and stay.
    #[test]
    fn only_what_has_not_ended_is_looked_at() {
        for sql in [LIVE, RUN_OUT, HOLDERS, HAS_RUN_OUT, HAS_RUN_OUT_FOR] {
            let plan = plan_of(sql);
            let by_index = |step: &String| step.contains("INDEX reservation_live");
            assert!(plan.iter().any(by_index), "{sql}: {plan:?}");
        }
    }
}
