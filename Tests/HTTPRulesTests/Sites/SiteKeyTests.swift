import Ground
import HTTPRules
import Testing
import Trials

@Suite("The key of a site's response")
struct SiteKeyTests {
    private func key(_ host: String, _ path: String, _ site: Site) -> String? {
        let bytes = Array("\(host) \(path)".utf8)
        var key = Array("before".utf8)
        let isMade = SiteKey.append(
            site, host: 0..<host.utf8.count, in: bytes.span,
            path: host.utf8.count + 1..<bytes.count, of: bytes.span, to: &key)
        let text = String(decoding: key, as: UTF8.self)
        #expect(isMade || text == "before")
        return isMade ? String(text.dropFirst(6)) : nil
    }

    @Test("A named site's key starts with its own name, whatever the client sent")
    func named() throws {
        let table = try siteTable("A.example", "b.example:8080", "[::1]")
        #expect(key("a.EXAMPLE.:80", "/x?y", table[0]) == "//a.example/x?y")
        #expect(key("a.example:8080", "/x?y", table[0]) == "//a.example/x?y")
        #expect(key("b.example:8080", "/", table[1]) == "//b.example:8080/")
        #expect(key("[::1]:99", "/", table[2]) == "//[::1]/")
    }

    @Test("The catch-all site's key starts with the client's host in canonical form")
    func others() throws {
        let site = try siteTable("*")[0]
        #expect(key("C.Example.:80", "/x", site) == "//c.example/x")
        #expect(key("c.example:", "/x", site) == "//c.example/x")
        #expect(key("c.example:081", "/x", site) == "//c.example:81/x")
        #expect(key("[::1]:8080", "/x", site) == "//[::1]:8080/x")
        #expect(key("", "/x", site) == "///x")
        #expect(key("a/b", "/x", site) == nil)
        #expect(key("a?b", "/x", site) == nil)
    }

    @Test(
        "A key has path and query as they were sent",
        arguments: [
            "/", "/a/../b", "/%7euser", "//", "/a//b", "/?", "/a?b=c&a=%00&&", "/a?b?c/d", "/A;b=c",
        ])
    func verbatim(path: String) throws {
        #expect(key("a.example", path, try siteTable("a.example")[0]) == "//a.example" + path)
    }

    @Test("An absolute target without a path has the path /")
    func emptyPath() throws {
        let site = try siteTable("a.example")[0]
        #expect(key("a.example", "", site) == "//a.example/")
        #expect(key("a.example", "?q", site) == "//a.example/?q")
    }

    @Test("A target that is not a path has no key")
    func noPath() throws {
        let site = try siteTable("a.example")[0]
        #expect(key("a.example", "*", site) == nil)
        #expect(key("a.example", "a.example:443", site) == nil)
    }

    @Test("Keys of different hosts and paths differ, and differ from those of images")
    func injective() throws {
        var dice = SplitMix64(seed: 11)
        let site = try siteTable("*")[0]
        var seen: [String: String] = [:]
        for _ in 0..<Trials.count(20_000) {
            let host = dice.text(of: "ab.:8/", upTo: 5)
            let path = "/" + dice.text(of: "ab/.:8?", upTo: 4)
            guard let made = key(host, path, site) else { continue }
            let bytes = Array(host.utf8)
            let bare = host.hasSuffix(":") ? String(host.dropLast()) : host
            let parts = bare.split(separator: ":", omittingEmptySubsequences: false)
            var name = String(parts.first ?? "")
            if name.count > 1, name.hasSuffix(".") { name.removeLast() }
            let port = parts.count > 1 ? Int(parts[1]) ?? 80 : 80
            let asked = "\(name) \(port) \(path)"
            #expect(seen[made, default: asked] == asked, "\(made) of \(bytes)")
            seen[made] = asked
            #expect(made.hasPrefix("//"))
        }
    }
}
