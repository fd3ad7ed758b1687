/// A message about invalidations with its frames, made once for all who get it.
package struct EncodedInvalidationMessage: Sendable {
    package let message: InvalidationMessage
    /// Of a confirmation the short form.
    package let frames: [[UInt8]]
    /// The digest of members and set, which a peer has to have heard in whole for the short form.
    let membershipDigest: UInt64?

    /// - Throws: ``SendError/tooLong(_:)``.
    package init(_ message: InvalidationMessage) throws(SendError) {
        self.message = message
        guard case .confirmation(let positions, let members, let view) = message else {
            frames = try message.frames()
            membershipDigest = nil
            return
        }
        frames = try InvalidationMessage.confirm(positions, members, view, isShort: true)
        membershipDigest = InvalidationMessage.membershipDigest(members, view.configuration)
    }
}
