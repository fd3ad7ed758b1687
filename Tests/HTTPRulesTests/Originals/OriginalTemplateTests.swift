import HTTPRules
import Testing

@Suite struct OriginalTemplateTests {
    private static let origin = "http://10.0.0.7:9000"

    @Test(
        "An original with a path on the site",
        arguments: [
            ("/thumbs/{size}/{original*}", "/thumbs/300x200/cats/a.jpg", "/cats/a.jpg"),
            ("/thumbs/{size}/{original*}", "/thumbs/300x200/cats/a.jpg?v=2", "/cats/a.jpg"),
            ("/thumbs/{size}/{original*}", "/thumbs/300x200/a%3Fb%20c.jpg", "/a%3Fb%20c.jpg"),
            ("/thumbs/{size}/{original*}", "/thumbs/s//a.jpg", "/a.jpg"),
            ("/thumbs/{size}/{original}", "/thumbs/300x200/cats%2Fa.jpg", "/cats/a.jpg"),
            ("/w{w}/{original*}?*", "/w300/a.jpg?v=2", "/a.jpg?v=2"),
            ("/w{w}/{original*}?*", "/w300/a.jpg", "/a.jpg"),
            ("/{original*}.webp", "/cats/a.jpg.webp", "/cats/a.jpg"),
            ("/{original*}.webp", "/a.webp.webp", "/a.webp"),
            ("/{w}x{h}-{q}/{original}/{any}.jpg", "/3x4-75/a.png/b.jpg.jpg", "/a.png"),
            ("/{original*}/size-300", "/a/b/size-300", "/a/b"),
            ("/t?src={original}&w={w}", "/t?w=3&src=%2Fa%2Bb+c.jpg", "/a+b%20c.jpg"),
            ("/t?src={original}&w={w}", "/t?x&w=3&src=a.jpg&y=1", "/a.jpg"),
            ("/t?op=thumb&src={original}", "/t?op=thumb&src=/a.jpg", "/a.jpg"),
            ("/t?op=&src={original}", "/t?op&src=/a.jpg", "/a.jpg"),
            ("/{original*}?w={w}", "/cats/a.jpg?w=300", "/cats/a.jpg"),
        ])
    func paths(template: String, target: String, expected: String) throws {
        #expect(try original(template, of: target) == Self.origin + expected)
        let elsewhere = try original("\(template) https://cdn.example/x/", of: target)
        #expect(elsewhere == "https://cdn.example/x" + expected)
    }

    @Test(
        "An original with a URL, with and without escapes",
        arguments: [
            ("/resize?src={url}", "/resize?src=https%3A%2F%2Fa.b%2Fc.jpg%3Fd%3De"),
            ("/resize?src={url}", "/resize?w=300&src=https://a.b/c.jpg?d=e"),
            ("/{options}/{url*}?*", "/200x,fit/https://a.b/c.jpg?d=e"),
            ("/{options}/{url*}?*", "/200x,fit/https:/a.b/c.jpg?d=e"),
            ("/{options}/{url*}", "/200x,fit/https%3A%2F%2Fa.b%2Fc.jpg%3Fd%3De"),
            ("/{options}/{url*}", "/200x,fit/HTTPS%3a%2F%2Fa.b%2Fc.jpg%3Fd%3De?x"),
            ("/{options}/{url}/{name}.webp", "/o/https%3A%2F%2Fa.b%2Fc.jpg%3Fd%3De/x.webp"),
            (
                "/cdn-cgi/image/{options}/{original*}?*",
                "/cdn-cgi/image/width=80/https://a.b/c.jpg?d=e"
            ),
            (
                "/{cloud}/image/fetch/{options}/{url*}?*",
                "/demo/image/fetch/w_300/https://a.b/c.jpg?d=e"
            ),
            ("/resize?src={url} https://", "/resize?src=a.b/c.jpg?d=e"),
            ("/resize?src={url} https://", "/resize?src=//a.b/c.jpg?d=e"),
            ("/i/{original*}?* https://", "/i/a.b/c.jpg?d=e"),
        ])
    func urls(template: String, target: String) throws {
        #expect(try original(template, of: target) == "https://a.b/c.jpg?d=e")
    }

    @Test(
        "A target that does not match the template has no original",
        arguments: [
            ("/thumbs/{size}/{original*}", "/thumbs/300x200"),
            ("/thumbs/{size}/{original*}", "/thumbs/300x200/"),
            ("/thumbs/{size}/{original*}", "/thumbs//a.jpg"),
            ("/thumbs/{size}/{original*}", "/Thumbs/300x200/a.jpg"),
            ("/thumbs/{size}/{original*}", "thumbs/300x200/a.jpg"),
            ("/thumbs/{size}/{original*}", "/x/thumbs/300x200/a.jpg"),
            ("/thumbs/{size}/{original*}", "/thumbs/300x200///a.example/b"),
            ("/thumbs/{size}/{original}", "/thumbs/300x200/cats/a.jpg"),
            ("/thumbs/{size}/{original}", "/thumbs/300x200/%"),
            ("/{w}x{h}/{original}", "/300/a.jpg"), ("/{w}x{h}/{original}", "/300x/a.jpg"),
            ("/{w}x{h}/{original}", "/300/ax/b.jpg"),
            ("/{original*}.webp", "/.webp"), ("/{original*}.webp", "/a.png"),
            ("/{original}.webp", "/a/b.webp"),
            ("/t?src={original}&w={w}", "/t"), ("/t?src={original}&w={w}", "/t?src=/a"),
            ("/t?src={original}&w={w}", "/t?src=/a&w="), ("/t?src={original}&w={w}", "/t?src=&w=1"),
            ("/t?src={original}&w={w}", "/t?src=/a&w=1&w=1"),
            ("/t?src={original}&w={w}", "/t?src=/a&src=/b&w=1"),
            ("/t?op=thumb&src={original}", "/t?op=crop&src=/a.jpg"),
            ("/t?op=thumb&src={original}", "/t?src=/a.jpg"),
            ("/t?src={original}", "/t/?src=/a"), ("/t?src={original}", "/t?src=%2"),
            ("/t?src={original}", "/t?src=ftp://a/b"),
            ("/t?src={original}", "/t?src=//a.example/b"),
            ("/t?src={url}", "/t?src=/a.jpg"), ("/t?src={url}", "/t?src=a.example/b.jpg"),
            ("/t/{url*}", "/t/a/b.jpg"), ("/t/{url*}", "/t/http%3A%2F%2Fa%2F%"),
            ("/t/{original*}?*", "/t/?http://a/b"),
        ])
    func refused(template: String, target: String) throws {
        #expect(try original(template, of: target) == nil)
    }
}
