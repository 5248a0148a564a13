//! Sessions by token, with generations.
//!
//! Epoll hands back a number. By the time an event is looked at, its session may
//! be gone and its place taken by another; the generation in the token tells.

/// Which of a session's two sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// What epoll carries for a session's socket: generation, index, side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token(u64);

/// Boxes by index; an entry costs two words while it is empty.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    live: usize,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<Box<T>>,
}

/// Indices from here on are not sessions: listeners and the inbox.
const RESERVED: u32 = 0x7fff_ff00;

// === impl Side ===

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

// === impl Token ===

impl Token {
    fn new(generation: u32, index: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(index) << 1)
    }

    /// A token that belongs to no session.
    pub(crate) fn reserved(number: u8) -> Self {
        Self::new(0, RESERVED + u32::from(number))
    }

    /// The number given to [`Token::reserved`], if it was made so.
    pub(crate) fn as_reserved(self) -> Option<usize> {
        self.index()
            .checked_sub(RESERVED)
            .map(|number| number as usize)
    }

    pub(crate) fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    pub(crate) fn raw(self) -> u64 {
        self.0
    }

    pub(crate) fn with_side(self, side: Side) -> Self {
        match side {
            Side::Client => Self(self.0 & !1),
            Side::Server => Self(self.0 | 1),
        }
    }

    pub(crate) fn side(self) -> Side {
        if self.0 & 1 == 0 {
            Side::Client
        } else {
            Side::Server
        }
    }

    fn index(self) -> u32 {
        ((self.0 & 0xffff_ffff) >> 1) as u32
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

// === impl Slab ===

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            live: 0,
        }
    }

    /// A place for a session that [`Slab::put`] will fill, or [`Slab::release`]
    /// will give back. `None` when there are two billion already.
    pub(crate) fn reserve(&mut self) -> Option<Token> {
        let index = if let Some(index) = self.free.pop() {
            index
        } else {
            let index = u32::try_from(self.slots.len())
                .ok()
                .filter(|index| *index < RESERVED)?;
            self.slots.push(Slot {
                generation: 0,
                value: None,
            });
            index
        };
        self.live += 1;
        let slot = &self.slots[index as usize];
        Some(Token::new(slot.generation, index))
    }

    /// Takes a session out to work on it; `None` for a token of the past.
    pub(crate) fn take(&mut self, token: Token) -> Option<Box<T>> {
        let slot = self.slots.get_mut(token.index() as usize)?;
        if slot.generation == token.generation() {
            slot.value.take()
        } else {
            None
        }
    }

    /// Looks at a session; `None` for a token of the past.
    pub(crate) fn get(&self, token: Token) -> Option<&T> {
        let slot = self.slots.get(token.index() as usize)?;
        if slot.generation == token.generation() {
            slot.value.as_deref()
        } else {
            None
        }
    }

    /// The same, to change it.
    pub(crate) fn get_mut(&mut self, token: Token) -> Option<&mut T> {
        let slot = self.slots.get_mut(token.index() as usize)?;
        if slot.generation == token.generation() {
            slot.value.as_deref_mut()
        } else {
            None
        }
    }

    /// Puts a session (back) into its place.
    pub(crate) fn put(&mut self, token: Token, value: Box<T>) {
        if let Some(slot) = self.slots.get_mut(token.index() as usize) {
            debug_assert_eq!(
                slot.generation,
                token.generation(),
                "put into another's place"
            );
            slot.value = Some(value);
        }
    }

    /// Gives up a place taken with [`Slab::reserve`]; its tokens become void.
    pub(crate) fn release(&mut self, token: Token) {
        if let Some(slot) = self.slots.get_mut(token.index() as usize) {
            debug_assert_eq!(slot.generation, token.generation(), "released twice");
            slot.generation = slot.generation.wrapping_add(1);
            slot.value = None;
            self.free.push(token.index());
            self.live -= 1;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// The tokens of all sessions.
    pub(crate) fn tokens(&self) -> Vec<Token> {
        (0_u32..)
            .zip(&self.slots)
            .filter(|(_, slot)| slot.value.is_some())
            .map(|(index, slot)| Token::new(slot.generation, index))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_the_past_finds_nothing() {
        let mut slab = Slab::new();
        let first = slab.reserve().unwrap();
        slab.put(first, Box::new("first"));
        slab.release(first);
        let second = slab.reserve().unwrap();
        slab.put(second, Box::new("second"));
        assert_eq!(first.index(), second.index());
        assert!(slab.get(first).is_none());
        assert!(slab.take(first).is_none());
        assert_eq!(slab.get(second), Some(&"second"));
        assert_eq!(slab.len(), 1);
    }

    #[test]
    fn sides_and_reserved_numbers_survive_the_trip_through_epoll() {
        let mut slab = Slab::<()>::new();
        let token = slab.reserve().unwrap();
        let server = Token::from_raw(token.with_side(Side::Server).raw());
        assert_eq!(server.side(), Side::Server);
        assert_eq!(server.with_side(Side::Client), token);
        assert_eq!(server.as_reserved(), None);
        assert_eq!(Token::reserved(3).as_reserved(), Some(3));
    }
}
