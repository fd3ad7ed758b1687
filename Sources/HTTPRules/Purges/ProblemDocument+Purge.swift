import Ground

extension ProblemDocument {
    /// The answer to PURGE of whom it is not for: 401 if a token would help and none came, which
    /// goes with a challenge (RFC 9110 §15.5.2), else 403.
    package init(_ refusal: PurgePermission.Refusal) {
        self.init(
            status: refusal.needsToken ? 401 : 403, name: "purge-not-allowed",
            title: "PURGE is not allowed here",
            detail: refusal.message)
    }

    /// The answer to PURGE where nobody may purge and no site is asked; it goes with Allow (RFC
    /// 9110 §15.5.6).
    package static let purgeNotConfigured = ProblemDocument(
        status: 405, name: "purge-not-configured", title: "PURGE is not taken here",
        detail: "No network and no token is allowed to purge on this port. Nothing was purged, and "
            + "the origin was not asked.")

    /// The answer to PURGE that cannot be followed.
    package init(_ fault: PurgeCommandFault) {
        let detail =
            switch fault {
            case .softPurgeValue:
                "Fastly-Soft-Purge is 1 for a soft purge, 0 or missing for a hard one."
            case .tooManyTags:
                "There are too many tags, or too long ones: \(PurgeCommand.tagsMax) of "
                    + "\(CacheTags.tagBytesMax) bytes are allowed, and "
                    + "\(CacheTags.bytesMax) bytes together."
            case .target(let fault): fault.message
            }
        self.init(
            status: 400, name: "purge-invalid", title: "The purge is not valid",
            detail: detail + " Nothing was purged.")
    }
}
