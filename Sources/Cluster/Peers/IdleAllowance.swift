import Ground

/// How many frames that lead nowhere a peer may send: resets, frames on streams that have ended,
/// and frames of kinds that are not known.
///
/// Each costs it little and may have cost the receiver a question that was begun (as in HTTP/2,
/// CVE-2023-44487). A bucket: full at first, refilled with time; a connection whose reader paused
/// finds as many as it holds at once without fault.
struct FrameFloodLimiter: Sendable {
    private var remainingFrames = Self.framesMax
    private var refilledAt: Instant?

    /// The most frames at once.
    static let framesMax = 65_536
    /// Frames per second over time.
    static let framesPerSecond = 16_384

    /// Counts a frame; false if it is one too many.
    mutating func consume(at now: Instant) -> Bool {
        refill(now)
        guard remainingFrames > 0 else { return false }
        remainingFrames -= 1
        return true
    }

    private mutating func refill(_ now: Instant) {
        guard let last = refilledAt else {
            refilledAt = now
            return
        }
        // More than this fills it whatever was spent.
        let elapsed = min((now - last).milliseconds, 60_000)
        let grown = Int(elapsed) * Self.framesPerSecond / 1_000
        guard grown > 0 else { return }
        remainingFrames = min(remainingFrames + grown, Self.framesMax)
        refilledAt = now
    }
}
