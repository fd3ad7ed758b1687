/// Who owns how much of all keys: `/admin/v1/ring`.
package struct RingDocument: Sendable {
    package struct Share: Sendable {
        /// 32 hexadecimal digits.
        package var node: String
        /// Of first ownership, and of second, from 0 to 1.
        package var first: Double
        package var second: Double

        package init(node: String, first: Double, second: Double) {
            self.node = node
            self.first = first
            self.second = second
        }
    }

    package var slots: Int
    package var shares: [Share]
    /// Who owns first, by its place in ``shares``, at ``stripCount`` slots evenly apart.
    package var strip: [Int]

    package static let stripCount = 360

    package init(slots: Int, shares: [Share], strip: [Int]) {
        self.slots = slots
        self.shares = shares
        self.strip = strip
    }

    package var json: JSON {
        [
            "slots": JSON(slots),
            "members": .list(
                shares.map {
                    [
                        "node": .text($0.node), "share": .decimal($0.first),
                        "second_share": .decimal($0.second),
                    ]
                }),
            "strip": .list(strip.map { JSON($0) }),
        ]
    }

    static let shape = Shape.object(
        .has("slots", Shape.count),
        .has(
            "members",
            Shape.list(
                of: Shape.object(
                    .has("node", Shape.id), .has("share", Shape.share),
                    .has("second_share", Shape.share)))),
        .has(
            "strip", Shape.list(of: Shape.count, count: stripCount...stripCount),
            "Who owns first, by place in members, at slots evenly apart"))
}
