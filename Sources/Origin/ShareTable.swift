/// Who holds how many of a number of places, and who may have another.
///
/// A taker belongs to several holders, such as a client and a site, and needs room with each. A
/// share is not reserved: it is what a holder may have at most, so that it cannot have all.
///
/// Invariant: a holder without places is not in `held`.
package struct ShareTable: Hashable, Sendable {
    /// How many places there are, and which part of them each kind of holder may have, in
    /// hundredths, rounded up: never less than one place.
    package struct Limits: Hashable, Sendable {
        package var placesMax: Int
        package var clientPercent: Int
        package var originPercent: Int
        package var uploadPercent: Int

        package init(
            placesMax: Int, clientPercent: Int = 100, originPercent: Int = 100,
            uploadPercent: Int = 100
        ) {
            self.placesMax = placesMax
            self.clientPercent = clientPercent
            self.originPercent = originPercent
            self.uploadPercent = uploadPercent
        }

        /// Places that `holder` may have.
        package func placesMax(of holder: ShareHolder) -> Int {
            let percent =
                switch holder {
                case .client: clientPercent
                case .site, .origin, .address: originPercent
                case .uploads, .upgrades: uploadPercent
                }
            return (placesMax * percent + 99) / 100
        }
    }

    /// Why there is no place.
    package enum Obstacle: Hashable, Sendable {
        /// All are taken.
        case places
        /// One of the holders has its share.
        case share
    }

    package var limits: Limits
    /// Places taken.
    package private(set) var count = 0
    private var held: [ShareHolder: Int] = [:]

    package init(_ limits: Limits) {
        self.limits = limits
    }

    /// Why one that belongs to `holders` gets no place; nil if it may take one.
    ///
    /// A share says more than that all is taken: it stays when others leave.
    package func obstacle(to holders: [ShareHolder]) -> Obstacle? {
        for holder in holders {
            let shareMax = limits.placesMax(of: holder)
            // A share of all is none.
            guard shareMax >= limits.placesMax || held[holder, default: 0] < shareMax else {
                return .share
            }
        }
        return count < limits.placesMax ? nil : .places
    }

    /// True if no holder has its share, whether or not there are places.
    package func hasShare(for holders: [ShareHolder]) -> Bool {
        obstacle(to: holders) != .share
    }

    /// Places that the client among `holders` has; 0 without one.
    package func clientCount(of holders: [ShareHolder]) -> Int {
        for case .client(let address) in holders { return held[.client(address), default: 0] }
        return 0
    }

    /// One that belongs to `holders` has a place.
    package mutating func take(_ holders: [ShareHolder]) {
        count += 1
        for holder in holders { held[holder, default: 0] += 1 }
    }

    /// It has none any more.
    package mutating func giveBack(_ holders: [ShareHolder]) {
        precondition(count > 0, "a place is given back that nobody has")
        count -= 1
        for holder in holders { held[holder] = held[holder].flatMap { $0 > 1 ? $0 - 1 : nil } }
    }
}
