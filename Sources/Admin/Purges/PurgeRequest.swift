package import Ground

/// What a client wants to be purged, and how long it waits: the body and the query of
/// `POST /admin/v1/purges`; see <doc:Purges>.
package struct PurgeRequest: Hashable, Sendable {
    /// Makes a repeat harmless; nil if the node is to make one.
    package var id: [UInt8]?
    /// Stale at once, in place of gone.
    package var isSoft = false
    /// 1 to ``targetsMax``.
    package var targets: [PurgeTarget]
    /// Nil if the body does not say.
    package var wait: PurgeAcknowledgement?
    /// Nil if the body does not say.
    package var timeout: Interval?

    /// Bytes of a body at most.
    package static let bodyBytesMax = 64 << 10
    /// Targets of one purge at most; one record of the log holds them all.
    package static let targetsMax = 256
    /// Bytes of an id at most.
    package static let idBytesMax = 128
    /// How long a client may wait.
    package static let timeoutRange = Interval.zero ... .seconds(60)
    /// How long one waits that does not say.
    package static let timeoutDefault = Interval.seconds(5)

    package init(id: [UInt8]? = nil, isSoft: Bool = false, targets: [PurgeTarget]) {
        self.id = id
        self.isSoft = isSoft
        self.targets = targets
    }
}

/// What an answer to a purge waits for.
package enum PurgeAcknowledgement: String, CaseIterable, Sendable {
    /// Nothing: the purge is applied here, and not yet synced.
    case none
    /// The purge is synced here and sent to every member that there is a connection with: it
    /// survives this process.
    case issued
    /// No member is pending.
    case all

    /// What is waited for if nothing is said.
    package static let standard = PurgeAcknowledgement.issued

    static let allowed = allCases.map(\.rawValue).joined(separator: ", ")
}
