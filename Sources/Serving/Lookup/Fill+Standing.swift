package import Tiers

extension Fetch.Validity {
    /// What an answer is good for at this moment (DESIGN.md §7 "Stamps and marks").
    ///
    /// `effect` is what the marks say of it by the stamp of the instant at which its request began,
    /// to the origin or to a peer that was not *behind*. It `isExcluded` if its request is older
    /// than a closed fence allows. What is not shared is nobody's stored answer but one client's:
    /// that one is given it as it came.
    package init(of effect: InvalidationMark.Effect?, isExcluded: Bool, isShared: Bool) {
        switch (effect, isShared) {
        case (nil, _): self = isShared && isExcluded ? .unusable : .valid
        case (_, false): self = .mustRevalidate
        case (.purged, true): self = .unusable
        case (.stale, true): self = isExcluded ? .unusable : .mustRevalidate
        }
    }
}
