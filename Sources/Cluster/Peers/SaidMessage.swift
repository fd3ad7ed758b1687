/// A message about invalidations with its frames, made once for all who get it.
package struct SaidMessage: Sendable {
    package let message: InvalidationMessage
    /// Of a confirmation the short form.
    package let frames: [[UInt8]]
    /// The digest of members and set, which a peer has to have heard in whole for the short form.
    let company: UInt64?

    /// - Throws: ``SendRefusal/tooLong(_:)``.
    package init(_ message: InvalidationMessage) throws(SendRefusal) {
        self.message = message
        guard case .confirm(let positions, let members, let view) = message else {
            frames = try message.frames()
            company = nil
            return
        }
        frames = try InvalidationMessage.confirm(positions, members, view, isShort: true)
        company = InvalidationMessage.companyDigest(members, view.standing)
    }
}
