/// A redirect by way of which an answer came.
package struct Redirect: Hashable, Sendable {
    package var head: AnswerHead
    package var receipt: Freshness.Receipt
    /// Where it led: a canonical key.
    package var url: [UInt8]

    package init(head: AnswerHead, receipt: Freshness.Receipt, url: [UInt8]) {
        self.head = head
        self.receipt = receipt
        self.url = url
    }
}
