package import Ground

/// Which idle connections give up their places to new ones.
package enum IdleConnectionOrder {
    package struct Item: Hashable, Sendable {
        /// Where the hall keeps the connection.
        package var index: Int
        package var since: Instant
        /// It is one of this machine, and may have a place that is kept for that.
        package var isReserved: Bool

        package init(index: Int, since: Instant, isReserved: Bool = false) {
            self.index = index
            self.since = since
            self.isReserved = isReserved
        }
    }

    /// A list is made once for so many newcomers, who may come faster than lists can be made.
    package static let countMax = 64

    /// Those that go first: the longest idle one is the last of the list, and those of this machine
    /// come behind all others.
    ///
    /// Whoever becomes idle later comes behind all of them, so that the list stays right for those
    /// that are idle as long as it says.
    package static func next(of items: [Item]) -> [Item] {
        let first = items.sorted {
            $0.isReserved == $1.isReserved ? $0.since < $1.since : $1.isReserved
        }
        return first.prefix(countMax).reversed()
    }
}
