/// A redirect by way of which an answer came.
package struct Redirect: Hashable, Sendable {
    package var head: ResponseHead
    package var timing: Freshness.ResponseTiming
    /// Where it led: a canonical key.
    package var url: [UInt8]

    package init(head: ResponseHead, timing: Freshness.ResponseTiming, url: [UInt8]) {
        self.head = head
        self.timing = timing
        self.url = url
    }
}
