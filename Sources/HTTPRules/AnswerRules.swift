package import Ground

/// Why an answer is not stored (RFC 9111 §3).
package enum NotStored: Hashable, Sendable {
    /// Any status but 200.
    case status(UInt16)
    /// 206 holds a part and is never stored as the whole (RFC 9111 §3.3).
    case partialContent
    /// `no-store`, unless `must-understand` lifts it (RFC 9111 §5.2.2.3, §5.2.2.5).
    case noStore
    /// `private`, with fields or without (RFC 9111 §5.2.2.7).
    case isPrivate
    /// `Vary: *` (RFC 9111 §4.1).
    case varyEverything
    /// The type is neither an image nor one of the operator's.
    case contentType
}

/// What there is to know of an origin's answer before its body comes.
package struct Examination: Hashable, Sendable {
    /// Nil if the answer may be stored.
    package var notStored: NotStored?
    /// It may be given to others who wait for the same fetch: nothing in it is for one client only.
    ///
    /// This does not ask for freshness: who was already waiting when the answer was made is given
    /// nothing stale.
    package var isShareable: Bool
    /// The type is an image or one of the operator's.
    package var isTypeAccepted: Bool
    package var freshness: Freshness
    package var flags: EntryFlags
    package var varies: Negotiation
    package var negotiation: Negotiation
    package var lastModified: WallTime?
    /// Date, or the time of receipt if there is none that can be read (RFC 9110 §6.6.1).
    package var date: WallTime

    /// The facts of the stored answer, whose body has `size` bytes and whose head is `head`.
    package func facts(size: UInt64, head: StoredHead) -> EntryFacts {
        EntryFacts(
            size: size, bornAt: freshness.bornAt, freshUntil: freshness.freshUntil, flags: flags,
            varies: varies, negotiation: negotiation, lastModified: lastModified, date: date,
            entityTag: head.entityTag)
    }
}

extension Examination {
    /// What was found by way of a redirect is used no longer, by nobody else, and for no other
    /// request than the redirect itself could be (RFC 9110 §15.4, RFC 9111 §3).
    ///
    /// `defaultTTL` is for a redirect that says nothing of its freshness.
    package mutating func limit(by redirect: Redirect, defaultTTL: Interval) {
        let head = redirect.head
        let control = CacheControl(head)
        let vary = VaryRules(head)
        let own = Freshness(
            head, control: control, receipt: redirect.receipt, defaultTTL: defaultTTL)
        if own.freshUntil < freshness.freshUntil {
            freshness.lifetime = max(.zero, own.freshUntil - freshness.bornAt)
        }
        varies.formUnion(vary.varies)
        if control.flags.contains(.noCache) { flags.insert(.noCache) }
        if control.flags.contains(.noStore) {
            notStored = notStored ?? .noStore
        } else if control.flags.contains(.isPrivate) {
            notStored = notStored ?? .isPrivate
        } else if vary.isEverything {
            notStored = notStored ?? .varyEverything
        } else {
            return
        }
        isShareable = false
    }
}

/// Whether an answer may be stored by a shared cache, for how long, and for whom (RFC 9111 §3).
///
/// Set-Cookie does not keep an answer from being stored (RFC 9111 §7.3): the request told the
/// origin nothing of its client, and the field itself is neither stored nor passed on.
package enum AnswerRules {
    /// Examines the answer to a request that carried the reduced fields of `negotiation`.
    package static func examine(
        _ head: AnswerHead, negotiation: Negotiation, receipt: Freshness.Receipt,
        defaultTTL: Interval, types: ContentTypes
    ) -> Examination {
        let control = CacheControl(head)
        let vary = VaryRules(head)
        let isTypeAccepted = types.accept(head)
        let date = Freshness.time(head, .date, receipt)
        let lastModified = Freshness.time(head, .lastModified, receipt)
        let noStore =
            control.flags.contains(.noStore)
            && !(control.flags.contains(.mustUnderstand) && head.status == 200)
        let isPrivate = control.flags.contains(.isPrivate)
        let notStored: NotStored? =
            if head.status == 206 {
                .partialContent
            } else if head.status != 200 {
                .status(head.status)
            } else if noStore {
                .noStore
            } else if isPrivate {
                .isPrivate
            } else if vary.isEverything {
                .varyEverything
            } else if !isTypeAccepted {
                .contentType
            } else {
                nil
            }
        return Examination(
            notStored: notStored,
            isShareable: !noStore && !isPrivate && !vary.isEverything,
            isTypeAccepted: isTypeAccepted,
            freshness: Freshness(
                head, control: control, receipt: receipt, defaultTTL: defaultTTL),
            flags: flags(control, date: date, lastModified: lastModified),
            varies: vary.varies, negotiation: negotiation, lastModified: lastModified,
            date: date ?? receipt.receivedWall)
    }

    private static func flags(
        _ control: CacheControl, date: WallTime?, lastModified: WallTime?
    ) -> EntryFlags {
        var flags: EntryFlags = []
        if control.flags.contains(.noCache) { flags.insert(.noCache) }
        if let date, let lastModified, date.seconds - lastModified.seconds >= 1 {
            flags.insert(.strongDate)
        }
        return flags
    }
}
