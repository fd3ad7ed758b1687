package import Cluster
package import Ground
package import Tiers

/// What stamps decide while bytes are on their way: who may wait for a fetch, what an answer is
/// good for when it comes, and what a validation makes of what is held (DESIGN.md §7 "Stamps and
/// marks").
///
/// The stamp of an answer is that of the node at the instant its request began, to the origin or to
/// a peer that was not *behind*. No clock is in it.
package enum StampRule {
    /// What identifies an entry to marks.
    package struct Subject: Hashable, Sendable {
        package var name: EntryName
        package var key: [UInt8]
        /// As far as they are known: of a fetch nothing is before its head has come.
        package var tags: [[UInt8]]

        package init(_ name: EntryName, key: [UInt8], tags: [[UInt8]] = []) {
            self.name = name
            self.key = key
            self.tags = tags
        }
    }

    /// A request that arrives now may wait for a fetch whose first request began at `begun`.
    ///
    /// Asked again when the head has come, with the tags that it named: see
    /// ``use(of:begun:marks:fence:)``.
    package static func mayJoin(_ subject: Subject, begun: Stamp, marks: MarkTable) -> Bool {
        marks.effect(on: subject, stamp: begun) == nil
    }

    /// What an answer is good for at the instant at which it could be given.
    package enum AnswerUse: Hashable, Sendable {
        /// To be given to all who wait, and kept.
        case give
        /// Something that covers it was invalidated after its request began, or its request is
        /// older than a closed fence allows: whoever waits begins anew. It may be kept with its
        /// stamp, which tells the same to whoever finds it, unless it `isDead`.
        case startOver(isDead: Bool)
    }

    /// Judges an answer to a request that began at `begun`; `fence` is of this instant, too.
    package static func use(
        of subject: Subject, begun: Stamp, marks: MarkTable, fence: FencedUse
    ) -> AnswerUse {
        switch (marks.effect(on: subject, stamp: begun), fence) {
        case (.dead, _): .startOver(isDead: true)
        case (.stale, _), (nil, .revalidate): .startOver(isDead: false)
        case (nil, .asAlways), (nil, .asAlwaysUntil): .give
        }
    }

    /// The stamp of an entry stamped `held` which an answer to a request that began at `begun` has
    /// validated.
    ///
    /// Never that of the moment at which the answer came: what was invalidated in between stays so.
    package static func validated(_ held: Stamp, begun: Stamp) -> Stamp { max(held, begun) }

    /// When the origin validated what a peer sent: the instant at which the peer was asked, minus
    /// the age of the validation that it named.
    package static func validatedAt(asked: Instant, age: Interval) -> Instant {
        asked - max(.zero, age)
    }

    /// Marks from this stamp on are still needed: what is older covers nothing that is held or on
    /// its way.
    package static func isNeeded(_ mark: DiskMark, least: Stamp) -> Bool { mark.stamp > least }
}

extension MarkTable {
    fileprivate func effect(on subject: StampRule.Subject, stamp: Stamp) -> DiskMark.Effect? {
        effect(on: subject.name, key: subject.key, tags: subject.tags, stamp: stamp)
    }
}

extension Purge {
    /// What it leaves where entries are kept, applied at `stamp`.
    package func marks(at stamp: Stamp) -> [DiskMark] {
        targets.map { DiskMark($0.markTarget, isSoft: mode == .soft, stamp: stamp) }
    }
}

extension Purge.Target {
    /// What it covers where entries are kept.
    package var markTarget: DiskMark.Target {
        switch self {
        case .url(let url): .url(url)
        case .prefix(let host, let path): path.isEmpty ? .host(host) : .prefix(host + path)
        case .tag(let tag): .tag(tag)
        case .everything: .everything
        }
    }
}
