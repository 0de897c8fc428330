"""Tables of all words except nouns and verbs: adjectives, adverbs, names and cities, one entry per line.

Columns for adjectives: English, its comparative (``more`` if periphrastic, ``-`` if not gradable), German, its
comparative, and the noun classes or single nouns that it modifies.
"""

from __future__ import annotations

__all__ = ["ADJECTIVE_TABLE", "CITY_TABLE", "COMPANY_VERBS", "FREQUENCY_TABLE", "MANNER_TABLE", "NAMES", "TIME_TABLE"]

ADJECTIVE_TABLE = """
    old older alt älter person animal building vehicle garment furniture transport reading art instrument device \
opening city village bridge tree
    young younger jung jünger person animal tree
    new newer neu neuer building vehicle garment furniture transport art instrument device idea plan rule teacher \
reading bridge neighbor colleague boss
    big bigger groß größer animal building object vessel furniture vehicle transport outdoor chamber plant \
opening snack problem mistake
    small smaller klein kleiner animal building object vessel furniture vehicle transport outdoor chamber plant \
opening garment snack device child boy girl brother sister mistake
    long longer lang länger street bridge river garment reading sentence word film song question bench train \
beach island
    short shorter kurz kürzer reading sentence word film song question answer skirt dress dance street report
    high higher hoch höher mountain hill bridge gate chair
    tall taller hoch höher tower tree hotel castle church house
    beautiful more schön schöner woman girl princess queen singer dancer animal building garment plant outdoor art \
vessel instrument island city picture
    ugly uglier hässlich hässlicher animal building garment vessel furniture city picture device
    good better gut besser teacher doctor friend cook idea plan answer question reading art restaurant hotel \
snack staple drink
    bad worse schlecht schlechter idea plan answer reading art restaurant hotel driver doctor cook wine
    expensive more teuer teurer garment vehicle furniture instrument device vessel hotel restaurant ring picture \
wine chocolate
    cheap cheaper billig billiger garment vehicle furniture instrument device vessel hotel restaurant wine
    rich richer reich reicher person city
    poor poorer arm ärmer person village city
    happy happier glücklich glücklicher person
    sad sadder traurig trauriger person reading art dog
    tired more müde müder person animal
    friendly friendlier freundlich freundlicher person dog
    polite more höflich höflicher person question answer
    clever cleverer klug klüger person animal question answer idea
    stupid more dumm dümmer question idea mistake answer plan donkey thief giant rule goose hen film
    lazy lazier faul fauler person animal
    hardworking more fleißig fleißiger person
    strong stronger stark stärker person animal coffee tea
    weak weaker schwach schwächer person animal coffee
    brave braver mutig mutiger person dog lion
    shy more schüchtern schüchterner person
    famous more berühmt berühmter person art building reading city bridge poem
    nervous more nervös nervöser person horse
    hungry hungrier hungrig hungriger person animal
    thirsty thirstier durstig durstiger person animal
    healthy healthier gesund gesünder person animal staple salad soup apple
    sick sicker krank kränker person animal tree
    angry angrier wütend wütender person animal
    patient more geduldig geduldiger person
    curious more neugierig neugieriger person animal
    quiet quieter ruhig ruhiger person chamber street village valley lake hotel beach
    loud louder laut lauter device vehicle transport instrument street song child neighbor
    wild - wild - animal garden dance rose
    dangerous more gefährlich gefährlicher animal street mountain thief knife plan machine
    fast faster schnell schneller vehicle transport horse dog rabbit computer answer fox cat tiger dancer
    slow slower langsam langsamer vehicle transport turtle donkey computer song dance waiter cow pupil cook
    red - rot - garment vehicle plant object vessel furniture transport opening apple
    blue - blau - garment vehicle object vessel furniture transport opening
    green - grün - garment vehicle object vessel furniture opening apple meadow forest valley
    yellow - gelb - garment vehicle object vessel furniture transport plant
    black - schwarz - garment vehicle object vessel furniture animal instrument
    white - weiß - garment vehicle object vessel furniture animal plant house
    brown - braun - garment object furniture opening bear dog horse rabbit
    gray - grau - garment object vessel furniture opening mouse cat donkey wolf goose
    warm warmer warm wärmer garment chamber soup milk bed water blanket tea
    cold colder kalt kälter chamber soup drink lake river cellar
    hot hotter heiß heißer soup coffee tea milk water potato pizza pancake
    clean cleaner sauber sauberer garment vessel chamber vehicle street water hotel towel
    dirty dirtier schmutzig schmutziger garment vessel chamber vehicle street water shoe window
    dark darker dunkel dunkler chamber forest street beer house coat
    bright brighter hell heller chamber lamp house candle
    empty - leer - vessel box suitcase drawer chamber street transport church theater restaurant
    full - voll - vessel box suitcase drawer transport restaurant basket bag
    heavy heavier schwer schwerer object furniture box suitcase coat instrument
    light lighter leicht leichter bag basket box suitcase jacket coat bicycle chair blanket
    broken - kaputt - device vehicle furniture umbrella toy instrument
    modern more modern moderner building device furniture vehicle art kitchen
    comfortable more bequem bequemer furniture garment bed train vehicle
    sweet sweeter süß süßer snack honey chocolate wine tea
    fresh fresher frisch frischer snack staple milk water juice
    ripe - reif - apple pear banana orange cherry strawberry tomato
    delicious more lecker leckerer snack staple drink
    interesting more interessant interessanter reading art museum question topic city scientist
    boring more langweilig langweiliger reading art museum teacher village boss
    important more wichtig wichtiger topic reading king queen judge customer guest mayor boss scientist witness
    difficult more schwierig schwieriger topic customer guest child novel poem
    simple simpler einfach einfacher topic dress poem plan song machine
    wide wider breit breiter street river bridge bed bench gate valley
    narrow narrower schmal schmaler street bridge river valley bed opening
    deep deeper tief tiefer lake river valley bowl forest
    round - rund - furniture vessel stone ball window box
    elegant more elegant eleganter garment hotel restaurant person
    wet wetter nass nasser garment animal street towel meadow bench
    dry drier trocken trockener garment field bread cake towel wine
    strange stranger seltsam seltsamer person animal reading art topic
    funny funnier lustig lustiger reading art person animal monkey
    proud prouder stolz stolzer person horse
    honest more ehrlich ehrlicher person answer
    soft softer weich weicher bed sofa pillow blanket towel bread egg carpet sweater scarf glove butter cheese
    colorful more bunt bunter garment bird plant carpet picture ball meadow
"""

# Adverbs of manner by group; verbs refer to groups.
MANNER_TABLE = """
    pace slowly langsam
    pace quickly schnell
    care carefully vorsichtig
    patience patiently geduldig
    mood happily fröhlich
    mood proudly stolz
    sound quietly leise
    sound loudly laut
    calm calmly ruhig
    stealth secretly heimlich
    skill well gut
    skill badly schlecht
"""

# Verbs that take "with" or "for" a person.
COMPANY_VERBS = {
    "with": "work dance sing cook wait shop study play visit discuss eat drink read collect travel drive fly go \
return",
    "for": "buy bake draw paint build order repair write collect choose plant sing cook work pray",
}

# In German, never and already follow a definite object (behind), like nicht; the others precede it (before).
FREQUENCY_TABLE = """
    often oft before
    always immer before
    sometimes manchmal before
    usually meistens before
    rarely selten before
    never nie behind
    already schon behind
    just gerade before
"""

# Time adverbials: kind, English tree, German.
TIME_TABLE = """
    past | (NP-TMP (NN yesterday)) | gestern
    past | (NP-TMP (JJ last) (NN week)) | letzte Woche
    past | (NP-TMP (JJ last) (NN year)) | letztes Jahr
    past | (NP-TMP (JJ last) (NN night)) | letzte Nacht
    past | (NP-TMP (DT this) (NN morning)) | heute Morgen
    past | (ADVP (NP (CD two) (NNS days)) (RB ago)) | vor zwei Tagen
    past | (ADVP (NP (DT an) (NN hour)) (RB ago)) | vor einer Stunde
    past | (ADVP (NP (CD three) (NNS weeks)) (RB ago)) | vor drei Wochen
    past | (PP (IN on) (NP (NNP Sunday))) | am Sonntag
    past | (PP (IN on) (NP (NNP Friday))) | am Freitag
    habit | (NP-TMP (DT every) (NN day)) | jeden Tag
    habit | (NP-TMP (DT every) (NN week)) | jede Woche
    habit | (PP (IN in) (NP (DT the) (NN morning))) | am Morgen
    habit | (PP (IN in) (NP (DT the) (NN evening))) | am Abend
    habit | (PP (IN at) (NP (NN night))) | in der Nacht
    habit | (PP (IN in) (NP (NN summer))) | im Sommer
    habit | (PP (IN in) (NP (NN winter))) | im Winter
    habit | (PP (IN on) (NP (NNPS Mondays))) | montags
    now | (ADVP (RB now)) | jetzt
    now | (NP-TMP (NN today)) | heute
    future | (NP-TMP (NN tomorrow)) | morgen
    future | (NP-TMP (JJ next) (NN week)) | nächste Woche
    future | (NP-TMP (JJ next) (NN year)) | nächstes Jahr
    future | (ADVP (RB soon)) | bald
    future | (NP-TMP (DT this) (NN evening)) | heute Abend
    future | (PP (IN in) (NP (CD two) (NNS hours))) | in zwei Stunden
"""

NAMES = {"he": "Peter David Paul Simon Leon Jan Martin Otto", "she": "Anna Maria Julia Lena Clara Sophie Emma Laura"}

CITY_TABLE = """
    Berlin Berlin
    Hamburg Hamburg
    Vienna Wien
    Munich München
    Cologne Köln
    Paris Paris
    London London
    Rome Rom
    Zurich Zürich
    Prague Prag
    Brussels Brüssel
    Venice Venedig
"""
