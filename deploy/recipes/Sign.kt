// Signs URLs for a Nuthatch node, using only the Java standard library; for servers in Kotlin.
// An application must get signed URLs from its server: a key in an application is no secret.
//
//     kotlinc Sign.kt -include-runtime -d sign.jar
//     NUTHATCH_SIGNING_KEY=<secret> java -jar sign.jar image <node> <URL> [<expires>]
//     NUTHATCH_SIGNING_KEY=<secret> java -jar sign.jar site <name of the site> <URL> [<expires>]
//
// The secret is the part after the colon of a line in the node's --signing-key-file; <expires> is
// the time until which the URL is valid, in seconds since 1970.

import java.net.Inet6Address
import java.net.InetAddress
import java.net.URLEncoder
import java.util.Base64
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec
import kotlin.system.exitProcess

/** The address at which [node] (http://HOST:PORT) serves the image at [url]. */
fun signImage(key: String, node: String, url: String, expires: Long? = null): String {
    val target = normalised(url)
    val value = URLEncoder.encode(target, "UTF-8").replace("+", "%20")
    return "${node.trimEnd('/')}/v1/image?url=$value&${parameters(key, target, expires)}"
}

/** A URL of the site [name] of the node's settings; path and query are signed unchanged. */
fun signSite(key: String, name: String, url: String, expires: Long? = null): String {
    require(Regex("[!-\"$-~]+").matches(url)) { "not percent-encoded, or with a fragment: $url" }
    val parts = requireNotNull(Regex("https?://([^/?]*)(.*)").matchEntire(url)) { "no URL: $url" }
    val (authority, rest) = parts.destructured
    val host = if (name == "*") authority.lowercased().removeSuffix(":80") else name
    val target = "//$host${if (rest.startsWith("/")) "" else "/"}$rest"
    return url + (if ('?' in url) "&" else "?") + parameters(key, target, expires)
}

private fun parameters(key: String, target: String, expires: Long?): String {
    val until = expires?.toString() ?: ""
    val mac = Mac.getInstance("HmacSHA256")
    mac.init(SecretKeySpec(key.toByteArray(), "HmacSHA256"))
    val code = mac.doFinal("nuthatch-signed-url-v1\n$target\n$until".toByteArray())
    val signature = Base64.getUrlEncoder().withoutPadding().encodeToString(code)
    return (if (until.isEmpty()) "" else "expires=$until&") + "signature=$signature"
}

/** The normalised URL under which the node stores the image. */
fun normalised(url: String): String {
    val form = Regex("(https?)://([^/?#]*)([^?#]*)(\\?[^#]*)?(#.*)?", RegexOption.IGNORE_CASE)
    val parts = form.matchEntire(url)
    require(parts != null && url.none { it < ' ' || it == '\u007f' }) { "no http or https URL: $url" }
    val scheme = parts.groupValues[1].lowercased()
    val authority = authorityOf(scheme, parts.groupValues[2])
    return "$scheme://$authority${pathOf(parts.groupValues[3])}${escaped(parts.groupValues[4])}"
}

private fun authorityOf(scheme: String, authority: String): String {
    val form = Regex("(\\[[0-9a-f:.]+\\]|[a-z0-9._-]+)(?::([0-9]*))?")
    val parts = requireNotNull(form.matchEntire(authority.lowercased())) { "no host in ASCII" }
    var host = parts.groupValues[1].removeSuffix(".")
    if (host.startsWith("[")) host = "[${shortened(InetAddress.getByName(host) as Inet6Address)}]"
    val port = ("0" + parts.groupValues[2]).toInt()
    return if (port == 0 || port == (if (scheme == "http") 80 else 443)) host else "$host:$port"
}

/** An address as RFC 5952 writes it: the first longest run of two or more zero groups as `::`. */
private fun shortened(address: Inet6Address): String {
    val groups = address.address.toList().chunked(2)
        .map { (high, low) -> ((high.toInt() and 255) shl 8) or (low.toInt() and 255) }
    fun zerosFrom(start: Int) = groups.drop(start).takeWhile { it == 0 }.size
    val start = groups.indices.maxBy { zerosFrom(it) }!!
    val count = zerosFrom(start)
    val texts = groups.map { it.toString(16) }
    if (count < 2) return texts.joinToString(":")
    return texts.take(start).joinToString(":") + "::" + texts.drop(start + count).joinToString(":")
}

/** Decodes unreserved characters, and percent-encodes characters that a URL cannot have. */
private fun escaped(text: String): String {
    val latin1 = String(text.toByteArray(), Charsets.ISO_8859_1)
    val illegal = Regex("%([0-9A-Fa-f]{2})|[^A-Za-z0-9._~!$&'()*+,;=:@/?-]")
    return illegal.replace(latin1) { found ->
        require(found.value != "%") { "% must be followed by two hexadecimal digits" }
        val digits = found.groupValues[1]
        val code = if (digits.isEmpty()) found.value.codePointAt(0) else digits.toInt(16)
        val plain = digits.isNotEmpty() && Regex("[A-Za-z0-9._~-]").matches(code.toChar().toString())
        if (plain) code.toChar().toString() else "%%%02X".format(code)
    }
}

/** Normalises the escapes and removes dot segments (RFC 3986 section 5.2.4). */
private fun pathOf(path: String): String {
    val segments = escaped(path).removePrefix("/").split("/")
    val kept = mutableListOf<String>()
    for (segment in segments) {
        if (segment == "..") { if (kept.isNotEmpty()) kept.removeAt(kept.size - 1) }
        else if (segment != ".") kept.add(segment)
    }
    if (segments.last() == "." || segments.last() == "..") kept.add("")
    return "/" + kept.joinToString("/")
}

// Not String.lowercase(), which Kotlin has only from 1.5 on.
@Suppress("PLATFORM_CLASS_MAPPED_TO_KOTLIN")
private fun String.lowercased() = (this as java.lang.String).toLowerCase(java.util.Locale.ROOT)

fun main(arguments: Array<String>) {
    if (arguments.size !in 3..4 || arguments[0] !in listOf("image", "site")) {
        System.err.println("usage: sign image NODE URL [EXPIRES] | site NAME URL [EXPIRES]")
        exitProcess(2)
    }
    val key = System.getenv("NUTHATCH_SIGNING_KEY")
    val expires = arguments.getOrNull(3)?.toLong()
    val sign = if (arguments[0] == "image") ::signImage else ::signSite
    println(sign(key, arguments[1], arguments[2], expires))
}
