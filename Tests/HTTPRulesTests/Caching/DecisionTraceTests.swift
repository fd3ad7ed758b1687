import HTTPRules
import Testing

@Suite struct DecisionTraceTests {
    private func text(_ decision: DecisionTrace) -> String {
        var bytes = "x".bytes
        decision.append(to: &bytes)
        return String(bytes.text.dropFirst())
    }

    @Test("A decision trace is one dictionary of the known values")
    func whole() {
        var decision = DecisionTrace()
        #expect(text(decision) == "")
        decision.key = "//a.example/b?\"c\"".bytes
        decision.variantNames = fieldNames("accept", "foo")
        decision.variantKey = "//a.example/b\n0\naccept:a/b\nfoo\n".bytes
        decision.outcome = "validate"
        decision.reason = "stale since 3 s"
        decision.ageSeconds = 63
        decision.lifetimeSeconds = 60
        decision.lifetimeSource = "s-maxage"
        decision.controlField = "CDN-Cache-Control"
        decision.staleWhileRevalidateSeconds = 30
        decision.staleIfErrorSeconds = 0
        decision.flags = ["must-revalidate", "immutable"]
        decision.isStored = false
        decision.storageReason = "no-store"
        decision.tags = ["t1".bytes, "t\u{E9}".bytes]
        #expect(
            text(decision)
                == """
                verdict=validate, reason="stale since 3 s", age=63, lifetime=60, source=s-maxage, \
                ttl=-3, control=CDN-Cache-Control, \
                stale-while-revalidate=30, stale-if-error=0, \
                marks=("must-revalidate" "immutable"), stored=?0, storing=no-store, \
                key="//a.example/b?\\"c\\"", vary=("accept" "foo"), \
                variant="//a.example/b%0A0%0Aaccept:a/b%0Afoo%0A", tag-count=2, \
                tags=("t1" "t%C3%A9")
                """)
    }

    @Test("True is a member without a value; nil and empty values are omitted")
    func sparse() {
        var decision = DecisionTrace()
        decision.isStored = true
        decision.outcome = ""
        decision.ageSeconds = 5
        #expect(text(decision) == "age=5, stored")
    }

    @Test("A trace stays within its length limit and in ASCII")
    func bounded() {
        var decision = DecisionTrace()
        for letter: UInt8 in [0, 255, 34, 97] {
            let long = [UInt8](repeating: letter, count: 9000)
            let word = String(repeating: letter == 97 ? "a" : "\u{1}", count: 500)
            decision.key = long
            decision.variantKey = long
            decision.outcome = word
            decision.reason = word
            decision.lifetimeSource = word
            decision.controlField = word
            decision.storageReason = word
            decision.ageSeconds = .min
            decision.lifetimeSeconds = .max
            decision.staleIfErrorSeconds = .min
            decision.staleWhileRevalidateSeconds = .min
            decision.flags = Array(repeating: word, count: 300)
            decision.tags = Array(repeating: Array(long.prefix(10)), count: 1000)
            decision.variantNames = fieldNames("a", "b", String(repeating: "c", count: 600))
            decision.isStored = false
            let line = text(decision)
            #expect(line.utf8.count > 2000 && line.utf8.count <= DecisionTrace.bytesMax)
            #expect(line.utf8.allSatisfy { 0x20...0x7E ~= $0 })
            #expect(line.contains("vary=(\"a\" \"b\")"))
        }
    }
}
